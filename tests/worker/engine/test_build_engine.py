"""Engines that are built, by TensorRT for RTX on this CPU."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from worker.engine.run import build_engine, parse_network
from worker.engine.toolchains import this_platform
from worker.types import EngineRequest, EngineResult

Shape = tuple[int, ...]

NORM = """
    <ir_version: 10, opset_import: ["": 17]>
    norm (float[4,64] x) => (float[4,64] y)
    {
        %s
        two = Constant<value_float = 2.0>()
        eps = Constant<value_float = 0.00001>()
        exponent = Cast<to = %d>(two)
        small = Cast<to = %d>(eps)
        square = Pow(h, exponent)
        mean = ReduceMean<axes = [-1], keepdims = 1>(square)
        sum = Add(mean, small)
        root = Sqrt(sum)
        quotient = Div(h, root)
        y = Cast<to = 1>(quotient)
    }
"""
FLOAT, FLOAT16 = int(onnx.TensorProto.FLOAT), int(onnx.TensorProto.FLOAT16)


def lengths(low: int, best: int, high: int) -> dict[str, tuple[Shape, Shape, Shape]]:
    def of(*template: int) -> tuple[Shape, Shape, Shape]:
        at_low, at_best, at_high = (tuple(size or length for size in template) for length in (low, best, high))
        return at_low, at_best, at_high

    return {"q": of(1, 8, 0, 64), "k": of(1, 8, 64, 0), "v": of(1, 8, 0, 64)}


def build(onnx_file: Path, arch: str = "portable", **fields: Any) -> EngineResult:
    target = onnx_file.with_suffix(".engine")
    return build_engine(EngineRequest(onnx_file, target, "tensorrt-rtx", arch, **fields), timeout=120)


@pytest.mark.parametrize(("dtype", "fused"), [("float16", 1), ("bfloat16", 1), ("float", 0)])
def test_the_mark_of_a_fused_attention_means_what_we_take_it_for(
    save_attention: Callable[..., Path], dtype: str, fused: int
) -> None:
    assert build(save_attention(dtype)).fused_attentions == fused


@pytest.mark.parametrize("arch", ["portable", "sm_86", "sm_86+sm_89", "sm_120+sm_121+sm_75+sm_80+sm_86+sm_89"])
def test_an_engine_is_built_for_each_kind_of_arch(save_attention: Callable[..., Path], arch: str) -> None:
    result = build(save_attention(), arch)
    assert result.fused_attentions == 1
    assert (result.arch, result.toolchain, result.platform) == (arch, "tensorrt-rtx", this_platform())
    assert result.size == result.engine.stat().st_size > 0


def test_a_result_tells_the_precision_the_interface_and_the_cost(save_attention: Callable[..., Path]) -> None:
    result = build(save_attention())
    assert result.tensor_dtypes == {"half": 4}
    assert [(tensor["name"], tensor["dtype"], tensor["shape"]) for tensor in result.inputs] == [
        ("q", "half", [1, 8, 256, 64]),
        ("k", "half", [1, 8, 64, 256]),
        ("v", "half", [1, 8, 256, 64]),
    ]
    assert [tensor["name"] for tensor in result.outputs] == ["y"]
    assert result.peak_rss > 50 << 20
    assert result.seconds > 0
    assert result.messages == ()


@pytest.mark.parametrize("profiles", [(lengths(16, 64, 128),), (lengths(16, 64, 128), lengths(128, 256, 512))])
def test_a_dynamic_length_is_built_for_each_profile(
    save_attention: Callable[..., Path], profiles: tuple[Any, ...]
) -> None:
    result = build(save_attention(length="length"), profiles=profiles)
    assert result.profiles == len(profiles)
    assert result.fused_attentions == 1
    assert result.inputs[0]["shape"] == [1, 8, -1, 64]
    assert result.inputs[0]["dims"] == [None, None, "length", None]


def test_a_fixed_input_may_appear_in_a_profile(save_attention: Callable[..., Path]) -> None:
    assert build(save_attention(), profiles=({"q": ((1, 8, 256, 64),) * 3},)).profiles == 1


def test_names_that_are_no_text_are_shown_escaped(save_model: Callable[[str], Path]) -> None:
    path = save_model("""
        <ir_version: 10, opset_import: ["": 17]>
        negate (float[4] in__) => (float[4] out_) { out_ = Neg(in__) }
    """)
    path.write_bytes(path.read_bytes().replace(b"in__", b"i\xff__").replace(b"out_", b"o\xfet_"))
    result = build(path)
    assert [tensor["name"] for tensor in (*result.inputs, *result.outputs)] == ["i\\xff__", "o\\xfet_"]


def test_an_input_whose_values_are_a_shape_takes_a_range_of_values(save_model: Callable[[str], Path]) -> None:
    path = save_model("""
        <ir_version: 10, opset_import: ["": 17]>
        reshape (float[4,6] x, int64[2] shape) => (float[rows,columns] y)
        { z = Reshape(x, shape)  y = Relu(z) }
    """)
    result = build(path, profiles=({"shape": ((4, 6), (4, 6), (4, 6))},))
    assert [tensor["is_shape_tensor"] for tensor in result.inputs] == [False, True]


@pytest.mark.parametrize(
    ("cast", "dtype", "kinds"),
    [("h = Cast<to = 10>(x)", FLOAT16, ["norm-overflow", "norm-overflow"]), ("h = Identity(x)", FLOAT, [])],
)
def test_overflow_in_a_half_precision_norm_is_a_warning_with_a_kind(
    save_model: Callable[[str], Path], cast: str, dtype: int, kinds: list[str]
) -> None:
    messages = build(save_model(NORM % (cast, dtype, dtype))).messages
    assert [message.kind for message in messages] == kinds
    assert {message.severity for message in messages} <= {"warning"}


def test_weights_beside_the_graph_are_found(save_model: Callable[[str], Path]) -> None:
    path = save_model("""
        <ir_version: 10, opset_import: ["": 17]>
        linear (float16[4,64] x) => (float16[4,64] y) { y = MatMul(x, w) }
    """)
    model = onnx.load(path)
    weight = onnx.numpy_helper.from_array(np.ones((64, 64), np.float16), "w")
    model.graph.initializer.append(weight)
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert path.with_name("weights.bin").stat().st_size >= 64 * 64 * 2
    assert build(path).tensor_dtypes == {"half": 1}


@pytest.mark.parametrize(("asked", "given"), [(1 << 30, 1 << 30), (1 << 60, 64 << 30)])
def test_the_workspace_is_at_most_what_the_toolchain_has(
    save_attention: Callable[..., Path], asked: int, given: int
) -> None:
    result = build(save_attention(), workspace_bytes=asked)
    assert result.workspace_bytes == given
    assert [message.severity for message in result.messages] == (["info"] if given < asked else [])


def test_options_of_the_toolchain_are_taken(save_attention: Callable[..., Path]) -> None:
    options = {"tf32": True, "weight_streaming": True, "profiling_verbosity": "detailed"}
    assert build(save_attention(), optimization_level=1, options=options).size > 0


def test_progress_and_warnings_are_told_while_they_happen(save_model: Callable[[str], Path], tmp_path: Path) -> None:
    events: list[Mapping[str, Any]] = []
    path = save_model(NORM % ("h = Cast<to = 10>(x)", FLOAT16, FLOAT16))
    request = EngineRequest(path, tmp_path / "engine", "tensorrt-rtx", "portable")
    result = build_engine(request, on_event=events.append, timeout=120)
    told = [(event["severity"], event["text"]) for event in events if event["event"] == "message"]
    assert "layers for portable: optimization level 3, workspace at most 16384 MiB" in told.pop(0)[1]
    assert told == [(message.severity, message.text) for message in result.messages]
    assert {"phase", "step", "of"} <= next(event for event in events if event["event"] == "progress").keys()


def test_only_the_engine_is_left_in_its_folder(save_attention: Callable[..., Path], tmp_path: Path) -> None:
    folder = tmp_path / "engines"
    folder.mkdir()
    build_engine(EngineRequest(save_attention(), folder / "engine", "tensorrt-rtx", "portable"), timeout=120)
    assert [path.name for path in folder.iterdir()] == ["engine"]


def test_parsing_alone_tells_the_facts_of_the_network(save_attention: Callable[..., Path]) -> None:
    facts = parse_network(save_attention(length="length"), "tensorrt-rtx", timeout=120)
    assert facts.tensor_dtypes["half"] == 4
    assert facts.inputs[1]["dims"] == [None, None, None, "length"]
    assert facts.messages == ()


@pytest.mark.slow
def test_thirty_builds_leave_no_descriptor_open(save_attention: Callable[..., Path]) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    path = save_attention()
    build(path)
    before = descriptors()
    for _ in range(30):
        build(path)
    assert descriptors() == before
