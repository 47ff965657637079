"""What a spec resolves to, given the workers that live."""

from typing import Any

import pytest

from service.builds.targets import resolve_target
from service.builds.types import BuildSpec, now
from service.errors import AtollError, InvalidOptions, NoWorker
from service.workers.types import ToolchainOffer, WorkerInfo

RTX = ToolchainOffer(
    toolchain="tensorrt-rtx", version="1.7.1", archs=("portable", "sm_86", "sm_89"), platform="linux-x86_64"
)
NEWER_RTX = RTX.model_copy(update={"version": "1.10.0"})
GPU_86 = ToolchainOffer(
    toolchain="tensorrt", version="11.4", archs=("sm_86",), platform="linux-x86_64", gpu="RTX A5000"
)
GPU_90 = GPU_86.model_copy(update={"archs": ("sm_90",), "gpu": "H200"})


def worker(*offers: ToolchainOffer, converter: str = "1") -> WorkerInfo:
    return WorkerInfo(
        name="w", host="h", pid=1, offers=offers, converter_version=converter, memory_bytes=1, started_at=now()
    )


def spec(**fields: Any) -> BuildSpec:
    return BuildSpec.model_validate({"model": "a" * 64, **fields})


@pytest.mark.parametrize(
    ("live", "fields", "expected"),
    [
        ([RTX], {}, ("portable", "tensorrt-rtx", "1.7.1")),
        ([GPU_90], {}, ("sm_90", "tensorrt", "11.4")),
        ([RTX], {"arch": "sm_89"}, ("sm_89", "tensorrt-rtx", "1.7.1")),
        ([RTX], {"arch": "sm_89+sm_86"}, ("sm_86+sm_89", "tensorrt-rtx", "1.7.1")),
        ([RTX, GPU_90], {"arch": "sm_90"}, ("sm_90", "tensorrt", "11.4")),
        ([RTX, NEWER_RTX], {}, ("portable", "tensorrt-rtx", "1.10.0")),
        ([RTX, NEWER_RTX], {"toolchain_version": "1.7.1"}, ("portable", "tensorrt-rtx", "1.7.1")),
        ([RTX, GPU_90], {"toolchain": "tensorrt"}, ("sm_90", "tensorrt", "11.4")),
    ],
)
def test_what_is_left_open_is_filled_in(
    live: list[ToolchainOffer], fields: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    target = resolve_target(spec(**fields), [worker(offer) for offer in live])
    assert (target.spec.arch, target.spec.toolchain, target.spec.toolchain_version) == expected
    assert (target.platform, target.converter_version) == ("linux-x86_64", "1")


@pytest.mark.parametrize(
    ("live", "fields", "kind", "says"),
    [
        ([], {}, NoWorker, "atoll worker"),
        ([], {"queue_without_worker": True}, NoWorker, "ever seen"),
        ([RTX], {"arch": "sm_90"}, NoWorker, "tensorrt-rtx 1.7.1 for portable, sm_86, sm_89"),
        ([GPU_86], {"arch": "sm_86+sm_89"}, NoWorker, "sm_86"),
        ([RTX], {"toolchain": "tensorrt"}, NoWorker, "tensorrt for any arch"),
        ([RTX], {"arch": "sm_86", "toolchain_version": "9"}, NoWorker, "1.7.1"),
        ([RTX, GPU_90], {}, InvalidOptions, "name one of portable, sm_86, sm_89, sm_90"),
        ([RTX, GPU_86], {"arch": "sm_86"}, InvalidOptions, "name one of tensorrt, tensorrt-rtx"),
    ],
)
def test_what_nobody_builds_or_nobody_can_tell_is_refused(
    live: list[ToolchainOffer], fields: dict[str, Any], kind: type[AtollError], says: str
) -> None:
    with pytest.raises(AtollError, match=says.replace("+", r"\+")) as caught:
        resolve_target(spec(**fields), [worker(offer) for offer in live])
    assert type(caught.value) is kind


def test_a_build_may_wait_for_a_kind_of_worker_that_was_seen() -> None:
    wanted = spec(arch="sm_90", queue_without_worker=True)
    target = resolve_target(wanted, [worker(RTX)], [worker(RTX), worker(GPU_90, converter="7")])
    assert (target.spec.toolchain, target.converter_version) == ("tensorrt", "7")
