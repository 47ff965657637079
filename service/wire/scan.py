"""One walk over an ONNX file: what it has, or why it is refused. It imports little, to start fast."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service.wire.checks import check_model
from service.wire.external import check_slices, distinct_bytes
from service.wire.limits import MAX_NODES, MAX_OPERATORS
from service.wire.reader import Reader, signed
from service.wire.refusal import WireError
from service.wire.schema import ATTRIBUTE, FUNCTION, GRAPH, MODEL, NODE, OPSET
from service.wire.tally import Tally
from service.wire.tensor import Tensor, read_sparse, read_tensor
from service.wire.value_info import Value, read_value


def scan(path: Path, external: Mapping[str, int]) -> dict[str, Any]:
    """The members of a `ModelScan`. `external`: the size in bytes by location. Raises WireError."""
    with path.open("rb", buffering=0) as file:
        reader = Reader(file.fileno(), os.fstat(file.fileno()).st_size)
        if reader.size == 0:
            raise WireError("not-onnx", "The file is empty. Upload the `.onnx` file itself.")
        tally = Tally()
        _Walk(reader, tally).model()
    warnings = check_model(tally, reader.size)
    check_slices(tally.external, external)
    return _summary(tally, warnings)


class _Walk:
    """Visits every graph, node, attribute and tensor, and adds to the tally."""

    def __init__(self, reader: Reader, tally: Tally) -> None:
        self._reader = reader
        self._tally = tally

    def model(self) -> None:
        tally = self._tally
        for name, _, value, stop in self._reader.fields(MODEL, 0, self._reader.size, 1):
            match name:
                case "ir_version":
                    tally.ir_version = signed(value)
                case "producer_name":
                    tally.producer = self._reader.name(value, stop)
                case "opset_import":
                    tally.opsets.append(self._opset(value, stop, 2))
                case "graph":
                    tally.has_graph = True
                    self._graph(value, stop, 2, main=True)
                case "functions":
                    self._function(value, stop, 2)

    def _opset(self, start: int, stop: int, depth: int) -> tuple[bytes, int]:
        domain, version = b"", 0
        for name, _, value, end in self._reader.fields(OPSET, start, stop, depth):
            if name == "domain":
                domain = self._reader.name(value, end)
            else:
                version = signed(value)
        return domain, version

    def _graph(self, start: int, stop: int, depth: int, *, main: bool = False) -> None:
        for name, _, value, end in self._reader.fields(GRAPH, start, stop, depth):
            match name:
                case "node":
                    self._node(value, end, depth + 1)
                case "initializer":
                    self._weight(read_tensor(self._reader, value, end, depth + 1), main)
                case "sparse_initializer":
                    for tensor in read_sparse(self._reader, value, end, depth + 1):
                        self._weight(tensor, main)
                case "input" if main:
                    self._tally.inputs.append(read_value(self._reader, value, end, depth + 1))
                case "output" if main:
                    self._tally.outputs.append(read_value(self._reader, value, end, depth + 1))
                case "name":
                    self._reader.check_name(value, end)

    def _function(self, start: int, stop: int, depth: int) -> None:
        for name, _, value, end in self._reader.fields(FUNCTION, start, stop, depth):
            match name:
                case "node":
                    self._node(value, end, depth + 1)
                case "attribute_proto":
                    self._attribute(value, end, depth + 1)
                case "name" | "domain" | "overload" | "input" | "output" | "attribute":
                    self._reader.check_name(value, end)

    def _node(self, start: int, stop: int, depth: int) -> None:
        self._count_node(start)
        operator = domain = b""
        for name, _, value, end in self._reader.fields(NODE, start, stop, depth):
            match name:
                case "input" | "output" | "name" | "overload":
                    self._reader.check_name(value, end)
                case "attribute":
                    self._attribute(value, end, depth + 1)
                case "op_type":
                    operator = self._reader.name(value, end)
                case "domain":
                    domain = self._reader.name(value, end)
        self._tally.operators[domain, operator] += 1
        if len(self._tally.operators) > MAX_OPERATORS:
            raise WireError("too-complex", f"The graph has more than {MAX_OPERATORS} different operators.")

    def _count_node(self, at: int) -> None:
        self._tally.nodes += 1
        if self._tally.nodes > MAX_NODES:
            raise WireError("too-complex", f"The model has more than {MAX_NODES} nodes, counted up to byte {at}.")

    def _attribute(self, start: int, stop: int, depth: int) -> None:
        for name, _, value, end in self._reader.fields(ATTRIBUTE, start, stop, depth):
            match name:
                case "g" | "graphs":
                    self._graph(value, end, depth + 1)
                case "t" | "tensors":
                    self._constant(read_tensor(self._reader, value, end, depth + 1))
                case "sparse_tensor" | "sparse_tensors":
                    for tensor in read_sparse(self._reader, value, end, depth + 1):
                        self._constant(tensor)
                case "name" | "ref_attr_name":
                    self._reader.check_name(value, end)

    def _constant(self, tensor: Tensor) -> None:
        if tensor.external is not None:
            self._tally.external.append(tensor.external)

    def _weight(self, tensor: Tensor, main: bool) -> None:
        tally = self._tally
        if main:
            tally.initializers.add(tensor.name)
        tally.parameters += tensor.elements
        tally.dtypes[tensor.dtype] += 1
        if tensor.external is None:
            tally.inline_bytes += tensor.nbytes
        else:
            tally.external.append(tensor.external)


def _summary(tally: Tally, warnings: list[str]) -> dict[str, Any]:
    return {
        "ir_version": tally.ir_version,
        "opsets": {_text(domain) or "ai.onnx": version for domain, version in tally.opsets},
        "producer": _text(tally.producer),
        "inputs": [_value(value) for value in tally.inputs if value.name not in tally.initializers],
        "outputs": [_value(value) for value in tally.outputs],
        "op_counts": {_operator(*operator): count for operator, count in tally.operators.most_common()},
        "nodes": tally.nodes,
        "parameters": tally.parameters,
        "weight_bytes": tally.inline_bytes + distinct_bytes(tally.external),
        "dtypes": dict(tally.dtypes.most_common()),
        "external": [{**piece._asdict(), "tensor": _text(piece.tensor)} for piece in tally.external],
        "warnings": warnings,
    }


def _value(value: Value) -> dict[str, Any]:
    return {"name": _text(value.name), "dtype": value.dtype, "shape": value.shape}


def _operator(domain: bytes, operator: bytes) -> str:
    return _text(operator) if domain in (b"", b"ai.onnx") else f"{_text(domain)}::{_text(operator)}"


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
