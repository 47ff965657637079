"""Explanations for a terminal: a few nodes in full, many as one line each."""

from collections.abc import Iterator, Sequence

from worker.precision.explanation import (
    Explanations,
    InputExplanation,
    NodeExplanation,
    OutputExplanation,
    ReaderExplanation,
)
from worker.precision.report import AttentionReport, IslandReport
from worker.precision.views.names import short, visible
from worker.precision.views.units import number

IN_FULL = 3
"""Of more nodes than this each is one line."""
_LINES = 40
_FELLOWS = 8
_READERS = 6


def render_explanations(explanations: Explanations) -> str:
    """Lines without colour or width; names that could steer the terminal are escaped."""
    nodes = explanations.nodes
    if len(nodes) <= IN_FULL:
        return "\n".join("\n".join(_node(node)) + "\n" for node in nodes)
    return "\n".join(_many(explanations.pattern, nodes)) + "\n"


def _many(pattern: str, nodes: Sequence[NodeExplanation]) -> Iterator[str]:
    fp32 = sum(node.dtype == "fp32" for node in nodes)
    yield f"{visible(pattern)}: {number(len(nodes), 'node')}, {fp32} of them FP32; name one for more"
    for node in nodes[:_LINES]:
        yield f"  {short(node.node)} ({node.op}): {node.dtype}, {short(node.reason)}"
    if len(nodes) > _LINES:
        yield f"  … and {len(nodes) - _LINES} more; --json has them all"


def _node(node: NodeExplanation) -> Iterator[str]:
    yield f"{visible(node.node)}: {node.op} (opset {node.opset}), node {node.position} of {node.nodes}"
    yield f"  dtype     {node.dtype}, because of: {node.cause}"
    yield f"  reason    {visible(node.reason)}"
    if node.island is not None:
        yield from _island(node.node, node.island)
    if node.core is not None:
        yield from _core(node.node, node.core)
    yield from (_input(value) for value in node.inputs)
    for value in node.outputs:
        yield from _output(value)
    for finding in node.declined:
        yield f"  declined  {visible(finding.kind)} at {short(finding.where)}: {visible(finding.detail)}"
    for option in node.options:
        yield f"  change    {visible(option.option)} -> {visible(option.effect)}"
    if not node.options and node.dtype != "none":
        yield "  change    no option gives it another dtype"


def _island(node: str, island: IslandReport) -> Iterator[str]:
    yield f"  island    {visible(island.family)}, {number(len(island.nodes), 'node')}; hazard: {visible(island.hazard)}"
    yield from _fellows(node, island.nodes)


def _core(node: str, core: AttentionReport) -> Iterator[str]:
    yield f"  core      attention of {short(core.softmax)} in {core.dtype}: {visible(core.reason)}"
    yield from _fellows(node, core.nodes)


def _fellows(node: str, nodes: Sequence[str]) -> Iterator[str]:
    others = [short(name) for name in nodes if name != node]
    if others:
        more = f" … and {len(others) - _FELLOWS} more" if len(others) > _FELLOWS else ""
        yield f"            with {', '.join(others[:_FELLOWS])}{more}"


def _input(value: InputExplanation) -> str:
    note = f"; {value.note}" if value.note else ""
    how = f"made in {value.made}, cast to {value.read}" if value.cast else f"read in {value.read}"
    was = f", was {value.before}" if value.before != value.read else ""
    return f"  input {value.position}   {short(value.name)} from {short(value.source)}: {how}{was}{note}"


def _output(value: OutputExplanation) -> Iterator[str]:
    was = f", was {value.before}" if value.made not in (value.before, "as read") else ""
    yield f"  output {value.position}  {short(value.name)}: made in {value.made}{was}"
    if value.public:
        yield f"            an output, kept {value.before}" + (" by a cast" if was else "")
    yield from (f"            {_reader(reader)}" for reader in value.readers[:_READERS])
    if len(value.readers) > _READERS:
        yield f"            … and {len(value.readers) - _READERS} more readers"


def _reader(reader: ReaderExplanation) -> str:
    how = f"cast to {reader.read}" if reader.cast else f"in {reader.read}"
    return f"read by {reader.op} {short(reader.node)} {how}"
