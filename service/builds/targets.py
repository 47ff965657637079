"""What a build is for: arch, toolchain and version, resolved against what workers offer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from service.builds.types import BuildSpec
from service.errors import InvalidOptions, NoWorker
from service.workers.types import ToolchainOffer, WorkerInfo


@dataclass(frozen=True, slots=True)
class Target:
    """A spec whose arch, toolchain and version are set, and the rest of what its key needs."""

    spec: BuildSpec
    platform: str
    converter_version: str

    @property
    def key(self) -> str:
        return self.spec.key(converter_version=self.converter_version, platform=self.platform)


@dataclass(frozen=True, slots=True)
class _Candidate:
    offer: ToolchainOffer
    converter_version: str


def resolve_target(spec: BuildSpec, live: Sequence[WorkerInfo], seen: Sequence[WorkerInfo] = ()) -> Target:
    """Resolve `spec` against the `live` workers; with `queue_without_worker` also against those `seen` before.

    Raises NoWorker when nobody builds this, InvalidOptions when the spec leaves a choice open; both list what there is.
    """
    candidates = _candidates(live)
    if spec.queue_without_worker and not _offering(spec, candidates):
        candidates = _candidates(seen)
    if not candidates:
        raise NoWorker(_nobody(spec), archs=[])
    arch = spec.arch or _only_arch(spec, candidates)
    fitting = _offering(spec.model_copy(update={"arch": arch}), candidates)
    if not fitting:
        raise _not_offered(spec, arch, candidates)
    toolchain = _only_toolchain(arch, fitting)
    best = max(fitting, key=lambda candidate: (_version(candidate.offer.version), candidate.offer.platform))
    resolved = {"arch": arch, "toolchain": toolchain, "toolchain_version": best.offer.version}
    return Target(spec.model_copy(update=resolved), best.offer.platform, best.converter_version)


def _candidates(workers: Sequence[WorkerInfo]) -> list[_Candidate]:
    return [_Candidate(offer, worker.converter_version) for worker in workers for offer in worker.offers]


def _offering(spec: BuildSpec, candidates: Iterable[_Candidate]) -> list[_Candidate]:
    return [
        candidate
        for candidate in candidates
        if spec.toolchain in (None, candidate.offer.toolchain)
        and spec.toolchain_version in (None, candidate.offer.version)
        and (spec.arch is None or candidate.offer.offers(spec.arch))
    ]


def _only_arch(spec: BuildSpec, candidates: Sequence[_Candidate]) -> str:
    """The one arch that is meant: a GPU worker stands for its GPU, an ahead-of-time builder for `portable`."""
    archs = {arch for candidate in _offering(spec, candidates) for arch in _usual_archs(candidate.offer)}
    if len(archs) == 1:
        return archs.pop()
    if not archs:
        raise _not_offered(spec, None, candidates)
    raise InvalidOptions(f"Workers build for several archs; name one of {_archs(candidates)}.", archs=_list(candidates))


def _usual_archs(offer: ToolchainOffer) -> tuple[str, ...]:
    return ("portable",) if offer.gpu is None and "portable" in offer.archs else offer.archs


def _only_toolchain(arch: str, fitting: Sequence[_Candidate]) -> str:
    toolchains = sorted({candidate.offer.toolchain for candidate in fitting})
    if len(toolchains) > 1:
        raise InvalidOptions(f"Several toolchains build for {arch}; name one of {', '.join(toolchains)}.")
    return toolchains[0]


def _nobody(spec: BuildSpec) -> str:
    if spec.queue_without_worker:
        return "No worker was ever seen here, so nothing says what would be built; start one and send this again."
    return "No worker is live. Start one with `atoll worker`, or send `queue_without_worker: true` to wait for one."


def _not_offered(spec: BuildSpec, arch: str | None, candidates: Sequence[_Candidate]) -> NoWorker:
    wanted = " ".join(part for part in (spec.toolchain, spec.toolchain_version) if part)
    what = f"{wanted or 'any toolchain'} for {arch or 'any arch'}"
    offers = sorted({f"{candidate.offer.toolchain} {candidate.offer.version}" for candidate in candidates})
    detail = f"No live worker builds with {what}. There are {', '.join(offers)} for {_archs(candidates)}."
    return NoWorker(detail, archs=_list(candidates))


def _archs(candidates: Sequence[_Candidate]) -> str:
    return ", ".join(_list(candidates))


def _list(candidates: Sequence[_Candidate]) -> list[str]:
    return sorted({arch for candidate in candidates for arch in candidate.offer.archs})


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:
        return Version("0")
