"""The ONNX graph as an index of producers, consumers and types; weights as lazy references to bytes in files."""
