"""What is not built: each says what, where, and what to do, and leaves nothing behind."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from service.errors import ChildStopped, ChildTimeout, ProblemError
from service.errors import Problem as ProblemValue
from worker.engine.run import build_engine, parse_network
from worker.types import EngineRequest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where engines would go."""
    path = tmp_path / "engines"
    path.mkdir()
    return path


def refusal(onnx_file: Path, folder: Path, *, arch: str = "portable", **fields: Any) -> ProblemValue:
    request = EngineRequest(onnx_file, folder / "engine", fields.pop("toolchain", "tensorrt-rtx"), arch, **fields)
    with pytest.raises(ProblemError) as caught:
        build_engine(request, timeout=120)
    assert list(folder.iterdir()) == []
    return caught.value.problem()


def test_a_mismatch_of_types_names_its_node(save_model: Callable[[str], Path], folder: Path) -> None:
    problem = refusal(
        save_model("""
            <ir_version: 10, opset_import: ["": 17]>
            mismatch (float[4] x, float16[4] h) => (bool[4] y) { y = Greater(x, h) }
        """),
        folder,
    )
    assert problem.slug == "parser-refused"
    assert "node 0 'greater_0' (Greater)" in problem.detail
    assert "types Float and Half" in problem.detail
    assert "cudaError" not in problem.detail
    assert problem.model_extra is not None
    assert (problem.model_extra["node"], problem.model_extra["op_type"]) == ("greater_0", "Greater")


def test_operators_that_tensorrt_does_not_know_are_listed_once_each(
    save_model: Callable[[str], Path], folder: Path
) -> None:
    problem = refusal(
        save_model("""
            <ir_version: 10, opset_import: ["": 17, "acme": 1]>
            custom (float[4] x) => (float[4] y) { a = Foo(x) b = acme.Bar(a) y = Foo(b) }
        """),
        folder,
    )
    assert problem.slug == "unsupported-op"
    assert (problem.model_extra or {})["ops"] == ["Bar", "Foo"]


@pytest.mark.parametrize("content", [b"dummy\n", b"", b"\x08\x0a\x12\xff"])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, folder: Path, content: bytes) -> None:
    path = tmp_path / "text.onnx"
    path.write_bytes(content)
    problem = refusal(path, folder)
    assert problem.slug == "parser-refused"
    assert "ONNX" in problem.detail


def test_a_file_that_is_not_there_is_named(tmp_path: Path, folder: Path) -> None:
    assert "absent.onnx" in refusal(tmp_path / "absent.onnx", folder).detail


def test_parsing_alone_refuses_alike(tmp_path: Path) -> None:
    path = tmp_path / "text.onnx"
    path.write_text("dummy\n")
    with pytest.raises(ProblemError) as caught:
        parse_network(path, "tensorrt-rtx", timeout=120)
    assert caught.value.problem().slug == "parser-refused"


def test_a_builder_that_gives_no_engine_says_why_and_what_to_do(
    save_attention: Callable[..., Path], folder: Path
) -> None:
    problem = refusal(save_attention("float"), folder, arch="sm_75")
    assert problem.slug == "builder-failed"
    assert "Cannot compile operation 'matmul_0' for Turing (SM75): FP32 GEMM is not supported" in problem.detail
    assert "build for a newer arch" in problem.detail


def test_a_workspace_that_is_too_small_is_said_to_be(save_attention: Callable[..., Path], folder: Path) -> None:
    problem = refusal(save_attention(), folder, workspace_bytes=1024)
    assert problem.slug == "builder-failed"
    assert "raise workspace_gb" in problem.detail


@pytest.mark.parametrize(
    ("fields", "slug", "detail"),
    [
        ({"arch": "sm_90"}, "invalid-options", "cannot build for 'sm_90'; it builds for portable, sm_75"),
        ({"arch": "portable+sm_86"}, "invalid-options", "for several archs already"),
        ({"toolchain": "tensorflow"}, "invalid-options", "there are tensorrt, tensorrt-rtx"),
        ({"options": {"nonsense": 1}}, "invalid-options", "has no option 'nonsense'; it has profiling_verbosity"),
        ({"options": {"version_compatible": True}}, "invalid-options", "has no option 'version_compatible'"),
        ({"options": {"tf32": 1}}, "invalid-options", "'tf32' is 1; it has to be true or false"),
        ({"options": {"profiling_verbosity": ["all"]}}, "invalid-options", "one of none, layer_names_only, detailed"),
    ],
)
def test_options_that_the_toolchain_does_not_know_are_refused(
    save_attention: Callable[..., Path], folder: Path, fields: dict[str, Any], slug: str, detail: str
) -> None:
    problem = refusal(save_attention(), folder, **fields)
    assert problem.slug == slug
    assert detail in problem.detail


def test_a_dynamic_input_without_a_profile_is_named_with_its_dimension(
    save_attention: Callable[..., Path], folder: Path
) -> None:
    problem = refusal(save_attention(length="length"), folder)
    assert problem.slug == "missing-profile"
    assert "input 'q', dimension 2 (length); input 'k', dimension 3 (length)" in problem.detail


@pytest.mark.parametrize("replaced", [b"left", b"node", b"out_", b"size"])
def test_a_name_that_is_no_text_is_shown_escaped(
    save_model: Callable[[str], Path], folder: Path, replaced: bytes
) -> None:
    path = save_model("""
        <ir_version: 10, opset_import: ["": 17]>
        mismatch (float[size] left, float16[size] right) => (bool[size] out_) { out_ = Greater(left, right) }
    """)
    path.write_bytes(path.read_bytes().replace(b"greater_0", b"node_name").replace(replaced, b"\xff\x1b\xfe\x01"))
    problem = refusal(path, folder)
    assert problem.slug == "parser-refused"
    assert ("\\xff\x1b\\xfe\x01_name" in problem.detail) == (replaced == b"node")


def chain(attentions: int) -> str:
    """A model that takes seconds to build."""
    core = "s{i} = MatMul(q{i}, k)  p{i} = Softmax<axis = -1>(s{i})  q{next} = MatMul(p{i}, v)"
    nodes = " ".join(core.format(i=i, next=i + 1) for i in range(attentions))
    return f"""
        <ir_version: 10, opset_import: ["": 17]>
        chain (float16[1,8,256,64] q0, float16[1,8,64,256] k, float16[1,8,256,64] v)
            => (float16[1,8,256,64] q{attentions})
        {{ {nodes} }}
    """


def test_a_build_that_is_stopped_leaves_no_process_and_no_file(save_model: Callable[[str], Path], folder: Path) -> None:
    events: list[Mapping[str, Any]] = []
    before = psutil.Process().children()
    request = EngineRequest(save_model(chain(400)), folder / "engine", "tensorrt-rtx", "portable")
    with pytest.raises(ChildStopped):
        build_engine(request, on_event=events.append, should_stop=lambda: bool(events), timeout=120)
    assert psutil.Process().children() == before
    assert list(folder.iterdir()) == []


def test_a_build_that_takes_too_long_leaves_no_process_and_no_file(
    save_model: Callable[[str], Path], folder: Path
) -> None:
    before = psutil.Process().children()
    request = EngineRequest(save_model(chain(400)), folder / "engine", "tensorrt-rtx", "portable")
    with pytest.raises(ChildTimeout):
        build_engine(request, timeout=1)
    assert psutil.Process().children() == before
    assert list(folder.iterdir()) == []
