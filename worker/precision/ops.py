"""Operators by what they do to values, as far as precision is concerned."""

MOVEMENT = frozenset(
    {
        "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Slice", "Split", "Concat", "Gather",
        "GatherElements", "GatherND", "Expand", "Tile", "Pad", "DepthToSpace", "SpaceToDepth", "Compress",
        "ReverseSequence", "Trilu", "ScatterND", "ScatterElements", "Scatter", "CenterCropPad", "Unique",
    }
)  # fmt: skip
"""Values move, none changes."""

EXACT = MOVEMENT | frozenset(
    {
        "Neg", "Abs", "Max", "Min", "Relu", "Sign", "Where", "ReduceMax", "ReduceMin", "MaxPool", "GlobalMaxPool",
        "TopK", "Clip", "Dropout", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal", "ArgMax", "ArgMin",
    }
)  # fmt: skip
"""Rounding before gives what rounding after gives, so such a node follows the dtype of what surrounds it."""

ADAPTIVE = frozenset({"Shape", "Size", "IsNaN", "IsInf", "NonZero"})
"""Read a float of any dtype and make no float: they never need a Cast. Cast itself is another (see plan)."""

PRODUCTS = frozenset({"MatMul", "Gemm", "Einsum"})

DENSE = PRODUCTS | frozenset({"Conv", "ConvTranspose", "DeformConv", "LSTM", "GRU", "RNN", "Attention"})
"""The work of the network: what half precision is for."""

ARITHMETIC = frozenset(
    {"Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "Reciprocal", "Exp", "Log", "Floor", "Ceil", "Round", "Mod"}
)

ELEMENTWISE = ARITHMETIC | frozenset(
    {
        "Neg", "Abs", "Max", "Min", "Relu", "Sign", "Where", "Clip", "Cast", "Tanh", "Sigmoid", "Erf", "Cos", "Sin",
        "Sum", "Mean", "Identity", "Dropout",
    }
)  # fmt: skip

SUMS = frozenset({"ReduceMean", "ReduceSum", "GlobalAveragePool", "AveragePool"})
