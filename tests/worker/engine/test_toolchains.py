import subprocess
import sys

import pytest

from service.errors import InvalidOptions, NoWorker
from worker.engine.gpu import Absence, Gpu
from worker.engine.toolchains import (
    TensorRTForRTX,
    TensorRTOnGpu,
    absent_toolchains,
    available_toolchains,
    this_platform,
    toolchain_named,
)

H200 = Gpu("NVIDIA H200", "sm_90", "570.1", free_bytes=100 << 30, total_bytes=139 << 30)


def test_rtx_is_offered_without_a_gpu() -> None:
    offer = next(offer for offer in available_toolchains() if offer.toolchain == "tensorrt-rtx")
    assert offer.archs[0] == "portable"
    assert offer.offers("sm_86+sm_89")
    assert not offer.offers("sm_90")
    assert (offer.gpu, offer.platform) == (None, this_platform())


def test_what_is_not_offered_says_why_and_what_to_do() -> None:
    offered = {offer.toolchain for offer in available_toolchains()}
    absent = absent_toolchains()
    assert offered.isdisjoint(absence.what for absence in absent)
    assert offered | {absence.what for absence in absent} == {"tensorrt", "tensorrt-rtx"}
    assert all(absence.reason and absence.cure for absence in absent)


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("from worker.engine.toolchains import available_toolchains as f; f()", {"tensorrt", "tensorrt_rtx_bindings"}),
        ("import worker.engine.__main__", {"tensorrt_rtx_bindings", "onnx", "numpy", "onnxruntime", "celery"}),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(statement: str, unwanted: set[str]) -> None:
    code = f"import sys; {statement}; print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert unwanted.isdisjoint(output.split())


def test_tensorrt_offers_the_arch_of_its_gpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.engine.toolchains.find_gpu", lambda: H200)
    monkeypatch.setattr("worker.engine.toolchains.installed_version", lambda toolchain: "10.13.0.35")
    offer = TensorRTOnGpu().offer()
    assert not isinstance(offer, Absence)
    assert (offer.archs, offer.gpu, offer.driver) == (("sm_90",), "NVIDIA H200", "570.1")
    assert TensorRTOnGpu().capabilities("sm_90") == ()
    with pytest.raises(NoWorker, match=r"sm_90 \(NVIDIA H200\) only, not for 'sm_86'"):
        TensorRTOnGpu().capabilities("sm_86")


def test_tensorrt_without_a_gpu_offers_nothing_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.engine.toolchains.find_gpu", lambda: Absence("GPU", "no driver", "use another worker"))
    monkeypatch.setattr("worker.engine.toolchains.installed_version", lambda toolchain: "10.13.0.35")
    assert TensorRTOnGpu().offer() == Absence("tensorrt", "no driver", "use another worker")
    assert TensorRTOnGpu().gpu() is None
    with pytest.raises(NoWorker, match="no driver"):
        TensorRTOnGpu().capabilities("sm_90")


@pytest.mark.parametrize(
    ("arch", "capabilities"), [("portable", ()), ("sm_86", ("SM86",)), ("sm_89+sm_120", ("SM89", "SM120"))]
)
def test_an_arch_is_told_as_capabilities(arch: str, capabilities: tuple[str, ...]) -> None:
    assert TensorRTForRTX().capabilities(arch) == capabilities


def test_an_unknown_toolchain_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidOptions, match="there are tensorrt, tensorrt-rtx"):
        toolchain_named("openvino")
