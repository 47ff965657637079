"""The smallest graphs of public reports about other converters, by the number that the project gave them.

Where a report's graph would lie between FP32 inputs and outputs, identity products around it make a trunk of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

Array = NDArray[Any]
Feed = Mapping[str, Array]

RANDOM = np.random.default_rng(0)
LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True, slots=True)
class Report:
    """`weights` are initializers beside those in the text. `feeds` are the inputs that the report names."""

    text: str
    feeds: tuple[Feed, ...]
    opset: int = 17
    weights: Mapping[str, Array] = field(default_factory=dict)

    def model(self) -> onnx.ModelProto:
        header = f'<ir_version: 8, opset_import: ["": {self.opset}]>'
        model = onnx.parser.parse_model(f"{header} {self.text}")
        model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in self.weights.items())
        return model

    def write(self, folder: Path) -> Path:
        path = folder / "report.onnx"
        onnx.save(self.model(), path)
        return path


def normal(*shape: int, scale: float = 1.0) -> Array:
    return (RANDOM.standard_normal(shape) * scale).astype(np.float32)


def floats(values: Any) -> Array:
    return np.asarray(values, np.float32)


KERNEL = {"k": normal(4, 4, 3, 3, scale=0.2)}
W8 = {"w": normal(8, 8, scale=0.35)}
W64 = {"w": normal(64, 64, scale=0.125)}
EYE64 = {"one": np.eye(64, dtype=np.float32)}
IMAGE = {"x": normal(1, 4, 8, 8)}
CONV = "Conv<pads = [1,1,1,1]>"
MULTIPLY = "a = MatMul(x, one) {body} y = MatMul(z, one)"

REPORTS: dict[str, Report] = {}


def report(name: str, text: str, *feeds: Feed, opset: int = 17, weights: Mapping[str, Array] | None = None) -> None:
    REPORTS[name] = Report(text, feeds, opset, weights or {})


# --- 1 to 17: dtypes -------------------------------------------------------------------------------------------------

for version in (11, 13):
    report(
        f"1 resize by scales, opset {version}",
        "g (float[1,4,8,8] x) => (float[1,4,16,16] y) <float[0] roi = {}, float[4] scales = {1,1,2,2}> "
        f'{{ a = {CONV}(x, k) b = Resize<mode = "linear">(a, roi, scales) y = {CONV}(b, k) }}',
        IMAGE,
        opset=version,
        weights=KERNEL,
    )
report(
    "1 resize by sizes, empty scales",
    "g (float[1,4,8,8] x) => (float[1,4,16,16] y) "
    "<float[0] roi = {}, float[0] scales = {}, int64[4] sizes = {1,4,16,16}> "
    f'{{ a = {CONV}(x, k) b = Resize<mode = "linear">(a, roi, scales, sizes) y = {CONV}(b, k) }}',
    IMAGE,
    opset=11,
    weights=KERNEL,
)
report(
    "2 transpose before a convolution",
    f"g (float[1,8,8,4] x) => (float[1,4,8,8] y) {{ a = Transpose<perm = [0,3,1,2]>(x) y = {CONV}(a, k) }}",
    {"x": normal(1, 8, 8, 4)},
    weights=KERNEL,
)
report(
    "3 a cast that the upload has",
    "g (int64[1,8] ids) => (float[1,8] y) { a = Cast<to = 1>(ids) b = Mul(a, s) y = MatMul(b, w) }",
    {"ids": np.arange(8).reshape(1, 8)},
    weights={"s": normal(8), **W8},
)
report(
    "4 pad with a fill",
    "g (float[1,4,8,8] x) => (float[1,4,12,12] y) <int64[8] pads = {0,0,2,2,0,0,2,2}, float fill = {0}> "
    f"{{ a = {CONV}(x, k) b = Pad(a, pads, fill) y = {CONV}(b, k) }}",
    IMAGE,
    weights=KERNEL,
)
report(
    "4 pad with its fill as attribute",
    "g (float[1,4,8,8] x) => (float[1,4,12,12] y) "
    f"{{ a = {CONV}(x, k) b = Pad<pads = [0,0,2,2,0,0,2,2], value = 0.5>(a) y = {CONV}(b, k) }}",
    IMAGE,
    opset=9,
    weights=KERNEL,
)
report(
    "5 branches of an If",
    "g (bool c, float[4,8] x) => (float[4,8] y) { a = MatMul(x, w) b = If (c) <"
    "then_branch = t () => (float[4,8] p) { p = MatMul(a, w) }, "
    "else_branch = e () => (float[4,8] q) { q = Identity(a) }> y = Add(b, a) }",
    *({"c": np.array(c), "x": normal(4, 8)} for c in (True, False)),
    weights=W8,
)
report(
    "6 an output that is read inside",
    "g (float[2,8] x) => (float[2,8] y, float[2,8] z) { y = MatMul(x, w) z = MatMul(y, w) }",
    {"x": normal(2, 8)},
    weights=W8,
)
report(
    "7 a constant that is scale and operand",
    "g (float[1,4,8,8] x) => (float[1,4,16,16] y) <int64[4] shape = {1,4,1,1}> "
    f"{{ a = {CONV}(x, k) b = Resize(a, , s) c = Reshape(s, shape) d = Mul(b, c) y = {CONV}(d, k) }}",
    IMAGE,
    weights={**KERNEL, "s": floats([1, 1, 2, 2])},
)
report(
    "8 a fill beside the trunk",
    "g (float[2,8] x) => (float[4,8] y) { h = MatMul(x, w) s = Shape(x) "
    "c = ConstantOfShape<value = float[1] {0}>(s) d = Concat<axis = 0>(h, c) y = MatMul(d, w) }",
    {"x": normal(2, 8)},
    weights=W8,
)
report(
    "9 dimensions that nobody named",
    "g (float[1,S,64] x) => (float[1,T,64] y) <int64[1] from = {0}, int64[1] to = {1}, int64[1] axis = {1}> "
    "{ h = MatMul(x, w) a = Slice(h, from, to, axis) b = LayerNormalization(a, gamma) "
    "c = LayerNormalization(h, gamma) d = Concat<axis = 1>(b, c) y = MatMul(d, w) }",
    {"x": normal(1, 6, 64)},
    weights={**W64, "gamma": floats(np.ones(64))},
)
report(
    "10 doubles",
    "g (float[2,8] x) => (float[2,8] y) <double k = {1.5}> "
    "{ a = MatMul(x, w) b = Cast<to = 11>(a) c = Mul(b, k) d = Cast<to = 1>(c) y = MatMul(d, w) }",
    {"x": normal(2, 8)},
    weights=W8,
)
report(
    "11 a range of floats",
    "g (float[T] x) => (float[T] y) <int64 axis = {0}, float from = {0}, float by = {1}> "
    "{ s = Shape(x) n = Gather(s, axis) f = Cast<to = 1>(n) r = Range(from, f, by) y = Mul(r, x) }",
    {"x": normal(5000)},
)
report(
    "12 sampling by a grid",
    "g (float[1,4,192,192] x, float[1,112,112,2] grid) => (float[1,4,112,112] y) "
    f"{{ a = {CONV}(x, k) b = GridSample<align_corners = 0>(a, grid) y = {CONV}(b, k) }}",
    {"x": normal(1, 4, 192, 192), "grid": RANDOM.uniform(-1, 1, (1, 112, 112, 2)).astype(np.float32)},
    weights=KERNEL,
)
report(
    "13 half of a height",
    "g (float[1,4,H,W] x) => (float[1,4,P,Q] y) <int64[1] from = {2}, int64[1] to = {4}, float half = {0.5}, "
    "int64[2] lead = {1,4}> "
    f"{{ a = {CONV}(x, k) s = Shape(a) b = Slice(s, from, to) f = Cast<to = 1>(b) m = Mul(f, half) v = Floor(m) "
    f"i = Cast<to = 7>(v) j = Concat<axis = 0>(lead, i) r = Resize(a, , , j) y = {CONV}(r, k) }}",
    {"x": normal(1, 4, 4099, 6)},
    weights=KERNEL,
)
for version in (13, 17):
    report(
        f"14 a convolution, opset {version}",
        f"g (float[1,4,8,8] x) => (float[1,4,8,8] y) {{ y = {CONV}(x, k) }}",
        IMAGE,
        opset=version,
        weights=KERNEL,
    )
report(
    "17 products that pass the range and come back",
    "g (float[8,64] x) => (float[8,64] y) <float big = {300}, float bigger = {90000}> "
    f"{{ {MULTIPLY.format(body='b = Mul(a, big) c = Mul(b, big) z = Div(c, bigger)')} }}",
    {"x": normal(8, 64)},
    weights=EYE64,
)

# --- 18 to 26: numbers -----------------------------------------------------------------------------------------------

MEANS = {
    "mean": "m = ReduceMean<axes = [2,3]>(a)",
    "global pool": "m = GlobalAveragePool(a)",
    "sum and count": "s = ReduceSum(a, axes) m = Div(s, count)",
}
for kind, body in MEANS.items():
    report(
        f"18 {kind} over many elements",
        "g (float[1,1,512,512] x) => (float[1,1,1,1] y) <float[1,1,1,1] k = {1}, int64[2] axes = {2,3}, "
        f"float count = {{262144}}> {{ a = Conv(x, k) {body} y = Conv(m, k) }}",
        {"x": np.ones((1, 1, 512, 512), np.float32)},
    )
report(
    "19 attention over 65,536 keys",
    "g (float[1,4,16,64] q, float[1,4,64,65536] k, float[1,4,65536,64] v) => (float[1,4,16,64] y) "
    "{ s = MatMul(q, k) p = Softmax<axis = -1>(s) y = MatMul(p, v) }",
    {
        "q": np.zeros((1, 4, 16, 64), np.float32),
        "k": np.zeros((1, 4, 64, 65536), np.float32),
        "v": np.ones((1, 4, 65536, 64), np.float32),
    },
)


def hot_product() -> dict[str, Array]:
    """Weights by which one channel of x + relu(x w1) w2 reaches some 66,000."""
    w1, w2 = normal(64, 64, scale=0.125), normal(64, 64, scale=0.125)
    w2[:, 7] = 2600.0
    return {"w1": w1, "w2": w2, "gamma": floats(np.ones(64)), **W64}


RMS_NORM = (
    "s = Pow({0}, two) m = ReduceMean<axes = [-1]>(s) e = Add(m, eps) q = Sqrt(e) n = Div({0}, q) z = Mul(n, gamma)"
)
report(
    "20 a residual that passes the range",
    "g (float[1,8,64] x) => (float[1,8,64] y) <float two = {2}, float eps = {1e-6}> "
    f"{{ u = MatMul(x, w1) h = Relu(u) p = MatMul(h, w2) r = Add(x, p) {RMS_NORM.format('r')} y = MatMul(z, w) }}",
    {"x": normal(1, 8, 64)},
    weights=hot_product(),
)
report(
    "21 a row that is masked throughout",
    "g (float[1,1,4,8] q, float[1,1,8,4] k, float[1,1,4,4] mask, float[1,1,4,8] v) => (float[1,1,4,8] y) "
    "{ s = MatMul(q, k) a = Add(s, mask) p = Softmax<axis = -1>(a) y = MatMul(p, v) }",
    {
        "q": floats(np.full((1, 1, 4, 8), 2.0)),
        "k": floats(np.full((1, 1, 8, 4), -1.875)),
        "mask": floats(np.full((1, 1, 4, 4), LOWEST)),
        "v": normal(1, 1, 4, 8),
    },
)
LENGTH = "l = ReduceL2<axes = [1]>(a) c = Clip(l, tiny) s = Shape(a) e = Expand(c, s) z = Div(a, e)"
report(
    "22 division by a length",
    f"g (float[2,64] x) => (float[2,64] y) <float tiny = {{1e-12}}> {{ {MULTIPLY.format(body=LENGTH)} }}",
    {"x": np.zeros((2, 64), np.float32)},
    {"x": normal(2, 64, scale=400)},
    weights=EYE64,
)
GUARDED_NORM = (
    "m = ReduceMean<axes = [-1]>(a) c = Sub(a, m) q = Mul(c, c) v = ReduceMean<axes = [-1]>(q) u = Max(v, zero) "
    "t = Min(u, infinite) e = Add(t, eps) r = Sqrt(e) i = Reciprocal(r) z = Mul(c, i)"
)
report(
    "23 a norm guarded by bounds",
    "g (float[8,64] x) => (float[8,64] y) <float zero = {0}, float infinite = {inf}, float eps = {1e-12}> "
    f"{{ {MULTIPLY.format(body=GUARDED_NORM)} }}",
    {"x": normal(8, 64, scale=400)},
    weights=EYE64,
)
report(
    "23 a mask times -1e12",
    "g (float[1,1,8,8] q, float[1,1,1,8] m) => (float[1,1,8,8] y) <float full = {1}, float huge = {-1e12}> "
    "{ k = Transpose<perm = [0,1,3,2]>(q) s = MatMul(q, k) d = Sub(full, m) b = Mul(d, huge) a = Add(s, b) "
    "p = Softmax<axis = -1>(a) y = MatMul(p, q) }",
    {"q": normal(1, 1, 8, 8), "m": floats(np.arange(8) < 6).reshape(1, 1, 1, 8)},
)
SOFTPLUS = {
    "softplus": "e = Exp(a) f = Add(e, full) z = Log(f)",
    "mish": "e = Exp(a) f = Add(e, full) l = Log(f) t = Tanh(l) z = Mul(a, t)",
    "log-sum-exp": "e = Exp(a) s = ReduceSum(e, axes) l = Log(s) z = Sub(a, l)",
}
for kind, body in SOFTPLUS.items():
    report(
        f"24 {kind} written out",
        "g (float[2,64] x) => (float[2,64] y) <float full = {1}, int64[1] axes = {1}> "
        f"{{ {MULTIPLY.format(body=body)} }}",
        {"x": floats(np.linspace(8, 20, 128)).reshape(2, 64)},
        weights=EYE64,
    )
for version in (9, 15):
    report(
        f"25 a variance beyond half, opset {version}",
        f"g (float[1,4,8,8] x) => (float[1,4,8,8] y) {{ a = {CONV}(x, k) b = BatchNormalization(a, s, s, s, v) "
        f"y = {CONV}(b, k) }}",
        IMAGE,
        opset=version,
        weights={**KERNEL, "s": floats([1, 1, 1, 1]), "v": floats([1e5, 1e-7, 1, 1])},
    )


def one_hot_channel() -> Array:
    x = normal(1, 8, 768)
    x[..., 5] = 3e4
    return x


report(
    "26 a norm with one huge channel",
    "g (float[1,8,768] x) => (float[1,8,768] y) { a = MatMul(x, one) z = LayerNormalization(a, gamma) "
    "y = MatMul(z, one) }",
    {"x": one_hot_channel()},
    weights={
        "one": np.eye(768, dtype=np.float32),
        "gamma": floats(np.where(np.arange(768) == 3, 1e-8, 1.0)),
    },
)
