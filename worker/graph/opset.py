"""Raises a model's opset, where ONNX's own converter can do it faithfully.

It works on the skeleton, so the size of the weights does not matter (the converter itself stops at 2 GB).
"""

import onnx
import onnx.version_converter
from onnx import ModelProto
from onnx.helper import OP_SET_ID_VERSION_MAP

from worker.graph import walk
from worker.graph.load import prepare
from worker.graph.skeleton import Skeleton


def raise_opset(skeleton: Skeleton, target: int) -> str | None:
    """Converts `skeleton.model` in place; else changes nothing and says why it cannot be done."""
    model = skeleton.model
    if any(True for node in model.graph.node for _ in walk.subgraphs(node)):
        return "ONNX's version converter does not enter subgraphs"
    foreign = {node.domain for node in model.graph.node} - {"", "ai.onnx"}
    if foreign:
        return f"ONNX's version converter does not know the domains {', '.join(sorted(foreign))}"
    try:
        raised = onnx.version_converter.convert_version(model, target)
    except Exception as error:  # onnx raises bare RuntimeError subclasses from C++
        return f"ONNX's version converter failed: {str(error).splitlines()[0]}"
    if _kept(raised) != _kept(model):
        return "ONNX's version converter changed inputs, outputs or weights"
    raised.ir_version = max(model.ir_version, OP_SET_ID_VERSION_MAP["ai.onnx", target])
    skeleton.model = raised
    prepare(skeleton)
    return None


def _kept(model: ModelProto) -> tuple[list[str], list[str], set[str]]:
    """What must survive: public names in order, and every weight that lies in a file."""
    locations = {entry.value for tensor in walk.tensors(model) for entry in tensor.external_data}
    return [value.name for value in model.graph.input], [value.name for value in model.graph.output], locations
