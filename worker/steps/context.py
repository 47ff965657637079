"""What every step knows, and what the steps make of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from service.builds.repository import BuildFacts
from service.builds.types import Accepted, Attempt, BuildSpec, EngineRef, Proof
from service.models.types import Model
from service.store.types import ObjectStore
from worker.journal import Journal
from worker.types import EngineResult, NetworkFacts

GRAPH_FILE = "model.onnx"


class Notes(Protocol):
    """Who is told what happens: lines of the log, and events of a child process."""

    def note(self, text: str) -> None: ...

    def take(self, event: Mapping[str, Any]) -> None: ...


class Job(Protocol):
    """What the steps from converting to inspecting need to know, for a build of the service or an offline one.

    `folder` is for what they write, `seconds` bounds each child process. `publishes`: files will be named by their
    digests, so whoever writes one hashes it on the way.
    """

    @property
    def spec(self) -> BuildSpec: ...

    @property
    def toolchain(self) -> str: ...

    @property
    def source(self) -> Path: ...

    @property
    def samples(self) -> tuple[Path, ...]:
        """Files with the user's inputs, in the order of the spec."""
        ...

    @property
    def engine(self) -> Path: ...

    @property
    def folder(self) -> Path: ...

    @property
    def journal(self) -> Notes: ...

    @property
    def should_stop(self) -> Callable[[], bool]: ...

    @property
    def seconds(self) -> float: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def publishes(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Context:
    """One attempt: what is built, where its files are, and whom to tell. `seconds` bounds each child process."""

    store: ObjectStore
    facts: BuildFacts
    accepted: Accepted
    attempt: Attempt
    model: Model
    folder: Path
    journal: Journal
    should_stop: Callable[[], bool]
    seconds: float
    memory_bytes: int

    @property
    def spec(self) -> BuildSpec:
        return self.accepted.spec

    @property
    def toolchain(self) -> str:
        if self.spec.toolchain is None:
            raise ValueError("an accepted spec is resolved")
        return self.spec.toolchain

    @property
    def source(self) -> Path:
        """The uploaded graph, its external data beside it."""
        return self.folder / "source" / GRAPH_FILE

    @property
    def samples(self) -> tuple[Path, ...]:
        return tuple(self.folder / "samples" / f"sample-{at}" for at in range(len(self.spec.accuracy.samples)))

    @property
    def engine(self) -> Path:
        return self.folder / "model.engine"

    @property
    def publishes(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Verification:
    """How the converted graph compares with FP32: a verdict of `worker.verify` as JSON, or why there is none.

    `findings` have `kind`, `where` and `detail`; those of the gates after the build are added to them.
    """

    verdict: str = "not verified"
    reason: str | None = None
    cosine: float | None = None
    outputs: tuple[Mapping[str, Any], ...] = ()
    inputs: str | None = None
    pessimistic: str | None = None
    culprit: Mapping[str, Any] | None = None
    worst: Mapping[str, Any] | None = None
    findings: tuple[Mapping[str, str], ...] = ()
    ranges: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """What the steps made so far. `graph` is what the engine is built from; `report` is None where nothing converted.

    `digests`: the sha256 of files that were hashed while they were written. `result` are blobs by role, as in
    `Finished`.
    """

    graph: Path
    report: Mapping[str, Any] | None = None
    digests: Mapping[Path, str] = field(default_factory=dict)
    verification: Verification = Verification()
    network: NetworkFacts | None = None
    built: EngineResult | None = None
    proof: Proof = field(default_factory=Proof)
    result: Mapping[str, str] = field(default_factory=dict)
    engine: EngineRef | None = None
    onnx: EngineRef | None = None

    def with_(self, **made: Any) -> "Work":
        return replace(self, **made)
