"""A build: one request for an engine. Its spec, its record, and the facts the store keeps of it."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from service.canonical import canonical_json, digest_of
from service.errors import Problem

_ARCH = re.compile(r"portable|sm_\d{2,3}(\+sm_\d{2,3})*")
_KEY_FIELDS = (
    "mode", "trunk", "bounded_attention", "profiles", "output", "workspace_gb",
    "optimization_level", "toolchain_options", "keep_fp32", "keep_trunk", "accuracy",
)  # fmt: skip


class Mode(StrEnum):
    """Which islands are kept in FP32; the design's vocabulary says what each contains."""

    MINIMAL = "minimal"
    ROPE = "rope"
    FULL = "full"
    AUTO = "auto"
    NONE = "none"


class Trunk(StrEnum):
    """The dtype outside islands."""

    FP16 = "fp16"
    BF16 = "bf16"


class Status(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        return self in (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED)


class Stage(StrEnum):
    """Where a build is, in the order in which a build passes through."""

    WAITING = "waiting"
    FETCHING = "fetching"
    CONVERTING = "converting"
    CHECKING = "checking"
    BUILDING = "building"
    INSPECTING = "inspecting"
    PUBLISHING = "publishing"


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _canonical_arch(arch: str) -> str:
    if not _ARCH.fullmatch(arch):
        raise ValueError(f"{arch!r} is not an arch: use `portable`, `sm_XX`, or several as `sm_86+sm_89`")
    return "+".join(sorted(set(arch.split("+"))))


Arch = Annotated[str, Field(max_length=200), AfterValidator(_canonical_arch)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(min_length=1, max_length=256)]
_Size = Annotated[int, Field(ge=0, le=2**31 - 1)]


class ShapeRange(_Value):
    """The smallest, best and largest shape of one dynamic input."""

    min: tuple[_Size, ...] = Field(max_length=8)
    opt: tuple[_Size, ...] = Field(max_length=8)
    max: tuple[_Size, ...] = Field(max_length=8)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not len(self.min) == len(self.opt) == len(self.max):
            raise ValueError(
                f"min, opt and max have different ranks: {len(self.min)}, {len(self.opt)}, {len(self.max)}"
            )
        for axis, (low, best, high) in enumerate(zip(self.min, self.opt, self.max, strict=True)):
            if not low <= best <= high:
                raise ValueError(f"axis {axis}: min <= opt <= max does not hold for {low}, {best}, {high}")
        return self


Profile = dict[Name, ShapeRange]


class AccuracySpec(_Value):
    """`samples`: digests of uploaded samples; without them the verdict is on generated inputs."""

    target_cosine: float = Field(default=0.999, gt=0, le=1)
    samples: tuple[Digest, ...] = Field(default=(), max_length=64)
    on_fail: Literal["fail", "warn"] | None = None

    @property
    def failure_is_fatal(self) -> bool:
        """Whether a missed target fails the build: as `on_fail` says, else on samples but not on generated inputs."""
        return self.on_fail == "fail" if self.on_fail else bool(self.samples)


class BuildSpec(_Value):
    """The parameters of a build. All but `model` may be left out. See `docs/` for each field's meaning."""

    model: Digest
    mode: Mode = Mode.ROPE
    trunk: Trunk = Trunk.FP16
    bounded_attention: bool = True
    arch: Arch | None = None
    toolchain: Literal["tensorrt", "tensorrt-rtx"] | None = None
    toolchain_version: Annotated[str, Field(max_length=64)] | None = None
    queue_without_worker: bool = False
    profiles: tuple[Profile, ...] = Field(default=(), max_length=16)
    preset: Name | None = None
    output: Literal["engine", "onnx"] = "engine"
    workspace_gb: float = Field(default=16, gt=0, le=1024)
    optimization_level: int = Field(default=3, ge=0, le=5)
    toolchain_options: dict[Name, Any] = Field(default={}, max_length=64)
    keep_fp32: tuple[Name, ...] = Field(default=(), max_length=10_000)
    keep_trunk: tuple[Name, ...] = Field(default=(), max_length=10_000)
    accuracy: AccuracySpec = AccuracySpec()
    priority: int = Field(default=5, ge=0, le=9)
    labels: dict[Name, Annotated[str, Field(max_length=256)]] = Field(default={}, max_length=64)
    webhook: Annotated[str, Field(max_length=2048)] | None = None

    def key(self, *, converter_version: str, platform: str) -> str:
        """The build key: sha256 over all that determines the engine. `arch` and toolchain must have been resolved."""
        if self.arch is None or self.toolchain is None or self.toolchain_version is None:
            raise ValueError("resolve arch, toolchain and toolchain_version before asking for the key")
        spec = self.model_dump(mode="json", include=set(_KEY_FIELDS))
        parts = {
            "model": self.model,
            "spec": spec,
            "converter": converter_version,
            "toolchain": self.toolchain,
            "toolchain_version": self.toolchain_version,
            "arch": self.arch,
            "platform": platform,
        }
        return digest_of(canonical_json(parts))


class StageTiming(_Value):
    name: Stage
    seconds: float


class Progress(_Value):
    """What the converter or the builder last said of itself; never an invented percentage.

    `unit`: what is counted (`bytes`), if it is not steps of the phase; `rate`: so many a second.
    """

    phase: str
    step: int | None = None
    of: int | None = None
    unit: str | None = None
    rate: float | None = None
    last_sign_seconds: float | None = None


class EngineRef(_Value):
    digest: str
    size: int
    url: str


class Proof(_Value):
    """What was measured about the result.

    `inputs`: what the verdict was made on. `pessimistic`: the verdict when sums accumulate in the trunk dtype too.
    `culprit`: the node that brought the error of a failed verdict in. `findings`: what else should be known.
    `half_tensor_share`: of the float tensors that nodes produce, those in the trunk dtype. `attentions`: the cores that
    were handed to the trunk; `fused_attentions`: kernels that the engine has for them, per profile.
    """

    verdict: Literal["passed", "failed", "not verified"] = "not verified"
    reason: str | None = None
    cosine: float | None = None
    inputs: Literal["generated", "samples"] | None = None
    pessimistic: Literal["passed", "failed", "not verified"] | None = None
    culprit: str | None = None
    findings: tuple[str, ...] = ()
    half_tensor_share: float | None = None
    attentions: int | None = None
    fused_attentions: int | None = None
    builder_warnings: tuple[str, ...] = ()


class BuildRecord(_Value):
    """What dashboards poll: the live projection of one build."""

    id: str
    key: str
    status: Status
    stage: Stage | None = None
    attempt: int = 0
    retry_of: str | None = None
    group: str | None = None
    submitter: str = "anonymous"
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    queue_position: int | None = None
    worker: str | None = None
    stages: tuple[StageTiming, ...] = ()
    progress: Progress | None = None
    expected_seconds: float | None = None
    spec: BuildSpec
    engine: EngineRef | None = None
    onnx: EngineRef | None = None
    proof: Proof | None = None
    problem: Problem | None = None
    links: dict[str, str] = {}

    def evolve(self, **changes: Any) -> "BuildRecord":
        return self.model_copy(update=changes)


# --- the facts in the store: builds/<id>/… ---------------------------------------------------------------------------


class Accepted(_Value):
    """`accepted`: written before the 202 is sent. The spec is resolved: arch, toolchain and version are set."""

    schema_version: int = 1
    id: str
    key: str
    spec: BuildSpec
    submitter: str
    idempotency_key: str | None = None
    group: str | None = None
    retry_of: str | None = None
    platform: str
    created_at: datetime
    idempotency_fingerprint: str | None = None


class Finished(_Value):
    """`finished`: the one end of a build. `result` are blob digests by role (engine, onnx, report, log, …)."""

    schema_version: int = 1
    status: Status
    attempt: int
    finished_at: datetime
    started_at: datetime | None = None
    worker: str | None = None
    stages: tuple[StageTiming, ...] = ()
    result: dict[str, str] = {}
    engine: EngineRef | None = None
    onnx: EngineRef | None = None
    proof: Proof | None = None
    problem: Problem | None = None


Cause = Literal["accepted", "child-crashed", "worker-lost", "handed-back"]
"""Why an attempt began: the first one, or how the one before it ended; so deaths are counted."""


class Attempt(_Value):
    """`attempts/<n>`: the fence that a worker claimed.

    With `ending` it is no run but a *seal*: the attempt before ended the build without an engine, and nobody can
    claim after it.
    """

    schema_version: int = 1
    n: int
    worker: str
    started_at: datetime
    cause: Cause = "accepted"
    ending: Finished | None = None


class Joined(_Value):
    """`joined/<digest>`: a later request for the same key while the build was in flight."""

    schema_version: int = 1
    submitter: str
    labels: dict[str, str] = {}
    webhook: str | None = None


class Group(_Value):
    """`groups/<id>`: the builds that one request with several archs asked for."""

    schema_version: int = 1
    id: str
    builds: tuple[str, ...]
    submitter: str
    created_at: datetime


def now() -> datetime:
    return datetime.now(UTC)


def links_of(build: str, result: Mapping[str, str]) -> dict[str, str]:
    """Where the API serves a build and what came of it."""
    links = {"self": f"/builds/{build}"}
    if "report" in result:
        links["report"] = f"/builds/{build}/report"
    if "log" in result:
        links["log"] = f"/builds/{build}/log"
    if "engine" in result:
        links["engine"] = f"/engines/{result['engine']}"
        links["manifest"] = f"/engines/{result['engine']}/manifest"
        links["onnx"] = f"/engines/{result['engine']}/onnx"
    elif "onnx" in result:
        links["onnx"] = f"/builds/{build}/onnx"
    return links
