"""A node of the index: the protobuf, its place, and its operator schema."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, NodeProto
from onnx.defs import OpSchema

_VARIADIC = OpSchema.FormalParameterOption.Variadic


@dataclass(frozen=True, slots=True)
class Slot:
    """One input or output position: the value's name, and what the schema says of its type.

    `variable` is a type variable of the schema (`T`), or a concrete type (`tensor(float)`) when the schema pins it;
    None when there is no schema. Positions of a heterogeneous variadic parameter each have a variable of their own.
    """

    index: int
    name: str
    variable: str | None

    @property
    def pinned(self) -> bool:
        return self.variable is not None and "(" in self.variable


@dataclass(eq=False, slots=True)
class Node:
    """Identity is the object. `index` is the position in topological order over all scopes.

    `op` is the operator's type; those outside ai.onnx carry their domain: `com.microsoft::FusedMatMul`.
    """

    index: int
    op: str
    proto: NodeProto
    graph: GraphProto
    opset: int
    schema: OpSchema | None
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]

    @property
    def label(self) -> str:
        """How reports name the node."""
        return self.proto.name or f"{self.proto.op_type}:{next(iter(self.proto.output), '')}"

    def is_a(self, *ops: str) -> bool:
        return self.op in ops

    def input(self, index: int) -> str:
        """The name at an input position; empty when it is left out."""
        names = self.proto.input
        return names[index] if index < len(names) else ""

    @property
    def output(self) -> str:
        return self.proto.output[0]

    def attribute(self, name: str, default: Any = None) -> Any:
        for attribute in self.proto.attribute:
            if attribute.name == name:
                return onnx.helper.get_attribute_value(attribute)
        return default

    @property
    def control_flow(self) -> bool:
        return any(
            attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for attribute in self.proto.attribute
        )

    def allows(self, variable: str, type_string: str) -> bool:
        """Whether the schema, at this opset, lets the type variable be the given type."""
        return self.schema is not None and type_string in _allowed(self.schema, variable)

    def __repr__(self) -> str:
        return f"<{self.op} {self.label}>"


def make_node(index: int, proto: NodeProto, graph: GraphProto, opset: int) -> Node:
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    schema = find_schema(proto.op_type, domain, opset)
    op = f"{domain}::{proto.op_type}" if domain else proto.op_type
    inputs = tuple(_slots(proto.input, schema.inputs if schema else None))
    outputs = tuple(_slots(proto.output, schema.outputs if schema else None))
    return Node(index, op, proto, graph, opset, schema, inputs, outputs)


@lru_cache(maxsize=4096)
def find_schema(op_type: str, domain: str, opset: int) -> OpSchema | None:
    """The schema in force, or None for an operator that this onnx does not know."""
    try:
        return onnx.defs.get_schema(op_type, max_inclusive_version=opset, domain=domain)
    except onnx.defs.SchemaError:
        return None


def _allowed(schema: OpSchema, variable: str) -> frozenset[str]:
    key = (schema.domain, schema.name, schema.since_version, variable)
    if key not in _ALLOWED:
        _ALLOWED[key] = frozenset(
            name
            for constraint in schema.type_constraints
            if constraint.type_param_str == variable.split("#")[0]
            for name in constraint.allowed_type_strs
        )
    return _ALLOWED[key]


_ALLOWED: dict[tuple[str, str, int, str], frozenset[str]] = {}


def _slots(names: Any, formals: Any) -> Iterator[Slot]:
    for index, name in enumerate(names):
        yield Slot(index, name, _variable(index, formals))


def _variable(index: int, formals: Any) -> str | None:
    if not formals:
        return None
    if index < len(formals):
        formal = formals[index]
    elif formals[-1].option == _VARIADIC:
        formal = formals[-1]
    else:
        return None
    if formal.option == _VARIADIC and not formal.is_homogeneous and "(" not in formal.type_str:
        return f"{formal.type_str}#{index}"
    return str(formal.type_str)
