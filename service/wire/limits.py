"""What a model may have, at most. Everything beyond is refused before anybody loads it."""

MAX_DEPTH = 100
"""Messages inside messages; protobuf's own limit, which 34 nested graphs exceed."""

MAX_NODES = 1_000_000
MAX_MESSAGES = 5_000_000
"""Messages of any kind: protobuf gives each, even an empty one, some hundred bytes of memory."""

MAX_OPERATORS = 10_000
"""Different operators."""

MAX_NAME_BYTES = 1024
MAX_RANK = 64
MAX_DIM = 2**31 - 1

MIN_IR_VERSION, MAX_IR_VERSION = 3, 14
"""IR 3 (2017) is the first with opset imports; 14 is what onnx 1.23 knows."""

MIN_OPSET, MAX_OPSET = 1, 28
"""ai.onnx: 7 (2017) is where broadcasting took its present form; 28 is what onnx 1.23 knows."""
