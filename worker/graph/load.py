"""Opens a model for conversion: skeleton, resolved external data, functions inlined, nodes sorted, names unique."""

from pathlib import Path

import onnx
import onnx.inliner
from onnx import ModelProto, TensorProto

from service.errors import ExternalDataInvalid, InvalidGraph, TensorSizeMismatch, UnsupportedDtype, UnsupportedOpset
from worker.graph import walk
from worker.graph.constants import unify_constants
from worker.graph.names import make_names_unique
from worker.graph.order import sort_nodes
from worker.graph.payload import external_payload
from worker.graph.skeleton import PAYLOAD_KEY, Skeleton, open_skeleton

OLDEST_OPSET = 1
NEWEST_OPSET = onnx.defs.onnx_opset_version()
_FIRST_IR_WITH_FREE_INITIALIZERS = 4


def load(path: Path) -> Skeleton:
    """The model at `path`, ready for analysis. Raises a kind of InvalidModel that names what is wrong and where."""
    skeleton = open_skeleton(path)
    model = skeleton.model
    _check_opset(model)
    _resolve_external_data(skeleton, path.parent)
    if model.functions:
        skeleton.model = _inline_functions(model)
    prepare(skeleton)
    return skeleton


def prepare(skeleton: Skeleton) -> None:
    """Puts the model into the form that the index relies on, in place. Raises InvalidGraph on a cycle or twin names."""
    _free_initializers(skeleton.model)
    unify_constants(skeleton.model)
    for graph in walk.graphs(skeleton.model.graph):
        sort_nodes(graph)
    make_names_unique(skeleton.model.graph)


def _check_opset(model: ModelProto) -> None:
    version = walk.opsets(model).get("")
    if version is None:
        if any(node.domain in ("", "ai.onnx") for node in model.graph.node):
            raise UnsupportedOpset("the model uses ONNX operators but imports no ai.onnx opset")
        return
    if not OLDEST_OPSET <= version <= NEWEST_OPSET:
        raise UnsupportedOpset(
            f"the model imports ai.onnx opset {version}; opsets {OLDEST_OPSET} to {NEWEST_OPSET} are supported. "
            "Export it again with one of those"
        )


def _resolve_external_data(skeleton: Skeleton, folder: Path) -> None:
    for tensor in walk.tensors(skeleton.model):
        if tensor.data_location == TensorProto.EXTERNAL:
            _resolve(skeleton, tensor, folder)
        elif tensor.HasField("raw_data") and len(tensor.raw_data) != _nbytes(tensor):
            raise _size_mismatch(tensor, len(tensor.raw_data))


def _resolve(skeleton: Skeleton, tensor: TensorProto, folder: Path) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if location.startswith(PAYLOAD_KEY):
        if skeleton.payloads[location].length != _nbytes(tensor):
            raise _size_mismatch(tensor, skeleton.payloads[location].length)
        return
    try:
        offset = int(entries.get("offset", "0"))
        length = int(entries["length"]) if "length" in entries else None
    except ValueError as error:
        raise ExternalDataInvalid(f"tensor {tensor.name!r} has a bad offset or length: {error}") from error
    payload = external_payload(folder, location, offset, length, _nbytes(tensor), tensor.name)
    del tensor.external_data[:]
    tensor.external_data.add(key="location", value=skeleton.add_payload(payload))


def _nbytes(tensor: TensorProto) -> int:
    if any(dim < 0 for dim in tensor.dims):
        raise TensorSizeMismatch(f"tensor {tensor.name!r} has a negative dimension: {list(tensor.dims)}")
    try:
        return walk.nbytes(tensor)
    except KeyError as error:
        raise UnsupportedDtype(f"tensor {tensor.name!r} has the unknown dtype {tensor.data_type}") from error


def _size_mismatch(tensor: TensorProto, there: int) -> TensorSizeMismatch:
    return TensorSizeMismatch(
        f"tensor {tensor.name!r} of shape {list(tensor.dims)} needs {_nbytes(tensor)} bytes, but {there} are stored"
    )


def _inline_functions(model: ModelProto) -> ModelProto:
    try:
        return onnx.inliner.inline_local_functions(model)
    except Exception as error:  # onnx raises bare RuntimeError subclasses from C++
        raise InvalidGraph(f"the model's local functions cannot be inlined: {error}") from error


def _free_initializers(model: ModelProto) -> None:
    """Before IR 4 each initializer had to be listed as an input too; it was a constant all the same."""
    if model.ir_version >= _FIRST_IR_WITH_FREE_INITIALIZERS:
        return
    model.ir_version = _FIRST_IR_WITH_FREE_INITIALIZERS
    names = {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in names]
    del model.graph.input[:]
    model.graph.input.extend(kept)
