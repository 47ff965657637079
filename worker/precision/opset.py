"""What the plan would need for nodes that have no half form at the opset of the file: another opset or operator."""

from functools import lru_cache

import onnx
from onnx.defs import OpSchema

from worker.graph.dtype import HalfType
from worker.graph.graph import Graph
from worker.graph.node import Node
from worker.precision.legality import has_no_half_form

_BATCH_NORM_WITH_OWN_STATISTICS = 15
_NEWEST_WANTED = 24
"""Later opsets give half forms to few operators (Einsum in BF16), and not every toolchain and runtime reads them."""


def wanted_opset(graph: Graph, half: HalfType) -> int | None:
    """The lowest opset at which every node that could be in half may be; None when the file's own will do."""
    versions = [version for node in graph.nodes if (version := first_legal_opset(graph, node, half)) is not None]
    return max(versions, default=None)


def einsums_without_half_form(graph: Graph, half: HalfType) -> frozenset[str]:
    """Outputs of the Einsums of FP32 values that no opset lets be in half."""
    return frozenset(
        node.output
        for node in graph.nodes
        if node.is_a("Einsum") and has_no_half_form(graph, node, half) and first_legal_opset(graph, node, half) is None
    )


def first_legal_opset(graph: Graph, node: Node, half: HalfType) -> int | None:
    """The first opset, above the file's own, at which the node may be in half; None where no opset changes that."""
    if node.is_a("BatchNormalization") and node.opset < _BATCH_NORM_WITH_OWN_STATISTICS:
        return None if node.attribute("training_mode", 0) else _BATCH_NORM_WITH_OWN_STATISTICS
    if not has_no_half_form(graph, node, half):
        return None
    for schema in _history().get(node.op, ()):
        if node.opset < schema.since_version <= _NEWEST_WANTED and _takes(schema, half):
            return schema.since_version
    return None


def _takes(schema: OpSchema, half: HalfType) -> bool:
    variable = schema.outputs[0].type_str
    return any(
        constraint.type_param_str == variable and half.type_string in constraint.allowed_type_strs
        for constraint in schema.type_constraints
    )


@lru_cache(maxsize=1)
def _history() -> dict[str, list[OpSchema]]:
    """Every version of every ONNX operator, oldest first."""
    history: dict[str, list[OpSchema]] = {}
    for schema in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda schema: schema.since_version):
        if schema.domain == "" and not schema.deprecated:
            history.setdefault(schema.name, []).append(schema)
    return history
