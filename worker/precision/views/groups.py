"""What the views show of a report: like things together, the largest groups first."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from worker.precision.report import AttentionReport, ConversionReport, Finding, IslandReport, KeptWeight

DECLINED = "declined: "
"""How the kind of a finding begins that says why a family left a node alone."""


@dataclass(frozen=True, slots=True)
class FamilyGroup:
    """The islands of one family, in the order of the graph."""

    family: str
    hazard: str
    islands: tuple[IslandReport, ...]

    @property
    def nodes(self) -> int:
        return sum(len(island.nodes) for island in self.islands)


@dataclass(frozen=True, slots=True)
class CoreGroup:
    """Attention cores of one dtype for one reason."""

    dtype: str
    reason: str
    cores: tuple[AttentionReport, ...]


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings of one kind. `declined` is the family's name where the kind says that one declined."""

    kind: str
    findings: tuple[Finding, ...]

    @property
    def declined(self) -> str | None:
        return self.kind.removeprefix(DECLINED) if self.kind.startswith(DECLINED) else None


@dataclass(frozen=True, slots=True)
class WeightGroup:
    """Weights that stay FP32 on one account, the largest first. Sizes are bytes."""

    cause: str
    weights: tuple[KeptWeight, ...]

    @property
    def size(self) -> int:
        return sum(weight.size for weight in self.weights)


def families(report: ConversionReport) -> tuple[FamilyGroup, ...]:
    groups: dict[tuple[str, str], list[IslandReport]] = {}
    for island in report.islands:
        groups.setdefault((island.family, island.hazard), []).append(island)
    found = (FamilyGroup(family, hazard, tuple(islands)) for (family, hazard), islands in groups.items())
    return tuple(sorted(found, key=lambda group: -group.nodes))


def island_nodes(report: ConversionReport) -> int:
    return sum(len(island.nodes) for island in report.islands)


def cores(report: ConversionReport) -> tuple[CoreGroup, ...]:
    groups: dict[tuple[str, str], list[AttentionReport]] = {}
    for core in report.attentions:
        groups.setdefault((core.dtype, core.reason), []).append(core)
    found = (CoreGroup(dtype, reason, tuple(members)) for (dtype, reason), members in groups.items())
    return tuple(sorted(found, key=lambda group: -len(group.cores)))


def hazards(report: ConversionReport) -> tuple[FindingGroup, ...]:
    """What was met and handled, or fell back; without what declined."""
    return _by_kind(finding for finding in report.findings if not finding.kind.startswith(DECLINED))


def declined(report: ConversionReport) -> tuple[FindingGroup, ...]:
    return _by_kind(finding for finding in report.findings if finding.kind.startswith(DECLINED))


def kept_weights(report: ConversionReport) -> tuple[WeightGroup, ...]:
    groups: dict[str, list[KeptWeight]] = {}
    for weight in sorted(report.kept_weights, key=lambda weight: -weight.size):
        groups.setdefault(weight.cause, []).append(weight)
    found = (WeightGroup(cause, tuple(weights)) for cause, weights in groups.items())
    return tuple(sorted(found, key=lambda group: -group.size))


def dtypes(report: ConversionReport) -> tuple[tuple[str, int, int], ...]:
    """(ONNX dtype, tensors before, tensors after), the most frequent first."""
    before, after = Counter(report.dtypes_before), Counter(report.dtypes_after)
    return tuple((name, before[name], after[name]) for name, _ in (before + after).most_common())


def _by_kind(findings: Iterable[Finding]) -> tuple[FindingGroup, ...]:
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.kind, []).append(finding)
    return tuple(FindingGroup(kind, tuple(members)) for kind, members in groups.items())
