"""The conversion report for a terminal: the first few of each, and how many more there are."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

from worker.precision.report import ConversionReport, FrontPoint, IslandReport, KeptWeight
from worker.precision.views import groups
from worker.precision.views.names import short, visible
from worker.precision.views.units import number, size

Item = TypeVar("Item")

FIRST = 3
"""How many of a kind are shown."""


def render_text(report: ConversionReport, first: int = FIRST) -> str:
    """Lines without colour or width; names that could steer the terminal are escaped."""
    sections = (
        _summary(report),
        _auto(report, first),
        _islands(report, first),
        _cores(report, first),
        _weights(report, first),
        _findings("FINDINGS", groups.hazards(report), first),
        _findings("DECLINED", groups.declined(report), first),
    )
    return "\n".join(chain.from_iterable(sections)) + "\n"


def _summary(report: ConversionReport) -> Iterator[str]:
    counts = report.counts
    attention = "bounded" if report.bounded_attention else "not bounded"
    yield f"mode {report.mode}, trunk {report.trunk}, attention {attention}, {_opset(report)}"
    yield (
        f"  half        {counts.half_tensor_share:.1%}: {counts.half_tensors} of "
        f"{number(counts.float_tensors, 'float tensor')}"
    )
    yield f"  nodes       {counts.nodes_before} -> {counts.nodes_after}"
    yield (
        f"  casts       {counts.casts_before} -> {counts.casts_after}: "
        f"{counts.casts_added} added, {counts.casts_removed} removed"
    )
    yield (
        f"  weights     {size(counts.weight_bytes_before)} -> {size(counts.weight_bytes_after)}: "
        f"{counts.half_weights} in {report.trunk}, {counts.float_weights} in fp32"
    )
    for name, before, after in groups.dtypes(report):
        if before != after:
            yield f"  {name:<11} {before} -> {number(after, 'tensor')}"


def _opset(report: ConversionReport) -> str:
    before, after = report.opset_before.get("", 0), report.opset_after.get("", 0)
    return f"opset {before}" if before == after else f"opset {before} -> {after}"


def _auto(report: ConversionReport, first: int) -> Iterator[str]:
    auto = report.auto
    if auto is None:
        return
    yield f"AUTO  target {auto.target_cosine:g} {auto.outcome}: {visible(auto.reason)}"
    if auto.cost is not None and auto.rope_cost is not None and auto.cosine is not None:
        share = f"{auto.cost / auto.rope_cost:.1%}" if auto.rope_cost else "100%"
        runs = number(auto.runs, "run")
        yield f"  cosine {auto.cosine:.6f} at {share} of the FP32 cost of mode rope; {runs} of the model"
    yield from _some(auto.front, first, _front_point)


def _front_point(point: FrontPoint) -> str:
    passed = "passes" if point.passed else "fails"
    broken = f", {point.nonfinite} not finite" if point.nonfinite else ""
    return f"{number(point.islands, 'island')}: cost {point.cost:.3g}, cosine {point.cosine:.6f}{broken}, {passed}"


def _islands(report: ConversionReport, first: int) -> Iterator[str]:
    nodes = number(groups.island_nodes(report), "node")
    yield f"ISLANDS  {number(len(report.islands), 'island')}, {nodes} kept in FP32"
    for group in groups.families(report):
        members = f"{number(len(group.islands), 'island')}, {number(group.nodes, 'node')}"
        yield f"  {visible(group.family)}: {members}; {visible(group.hazard)}"
        yield from _some(group.islands, first, _island)


def _island(island: IslandReport) -> str:
    ops = " ".join(f"{visible(op)}x{count}" if count > 1 else visible(op) for op, count in island.op_types.items())
    ends = short(island.nodes[0]) if len(island.nodes) == 1 else f"{short(island.nodes[0])} … {short(island.nodes[-1])}"
    return f"{short(island.reason)} [{ops}] {ends}"


def _cores(report: ConversionReport, first: int) -> Iterator[str]:
    if not report.attentions:
        return
    yield f"ATTENTION  {number(len(report.attentions), 'core')}"
    for group in groups.cores(report):
        yield f"  {number(len(group.cores), 'core')} in {group.dtype}: {short(group.reason)}"
        yield from _some(group.cores, first, lambda core: short(core.softmax))


def _weights(report: ConversionReport, first: int) -> Iterator[str]:
    if not report.kept_weights:
        return
    total = sum(weight.size for weight in report.kept_weights)
    yield f"WEIGHTS IN FP32  {len(report.kept_weights)}, {size(total)}"
    for group in groups.kept_weights(report):
        yield f"  {visible(group.cause)}: {number(len(group.weights), 'weight')}, {size(group.size)}"
        yield from _some(group.weights, first, _weight)


def _weight(weight: KeptWeight) -> str:
    shape = "x".join(map(str, weight.shape)) or "scalar"
    return f"{short(weight.name)} ({shape}, {size(weight.size)}): {short(weight.reason)}"


def _findings(title: str, kinds: Sequence[groups.FindingGroup], first: int) -> Iterator[str]:
    if not kinds:
        return
    yield f"{title}  {sum(len(group.findings) for group in kinds)}"
    for group in kinds:
        yield f"  {visible(group.declined or group.kind)}: {len(group.findings)}"
        yield from _some(group.findings, first, lambda finding: f"{short(finding.where)}: {short(finding.detail, 240)}")


def _some(items: Sequence[Item], first: int, line: Callable[[Item], str]) -> Iterable[str]:
    yield from (f"    {line(item)}" for item in items[:first])
    if len(items) > first:
        yield f"    … and {len(items) - first} more"
