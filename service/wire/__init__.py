"""A scan of ONNX's wire format that reads no weights and imports no onnx, in a child process under limits."""
