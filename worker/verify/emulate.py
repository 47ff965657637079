"""Half precision on a CPU: every half tensor becomes FP32 storage that is rounded to half after the node that made it.

Each node then computes in FP32 and rounds once, which is what a GPU kernel with FP32 accumulation does; what overflows
there becomes infinite here. ONNX Runtime's own half kernels do not: they upcast whole chains.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

from worker.graph import walk
from worker.graph.dtype import HALF_TYPES
from worker.graph.index import GraphIndex, build_index
from worker.graph.inference import infer
from worker.graph.names import NameSource, all_names
from worker.graph.node import Node
from worker.graph.skeleton import Skeleton
from worker.graph.types import Types, propagate
from worker.verify.types import Unverifiable
from worker.verify.weights import hoist_large_constants

_HALVES = {half.type_string: half.onnx for half in HALF_TYPES.values()}
_HALF_NUMBERS = frozenset(_HALVES.values())
_FLOAT = TensorProto.FLOAT

# What these give needs no rounding: it is made of values that have been rounded already.
_EXACT = frozenset(
    {
        "Abs", "Clip", "Compress", "Concat", "ConcatFromSequence", "Constant", "ConstantOfShape", "DepthToSpace",
        "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "If", "Loop", "Max", "MaxPool",
        "Min", "Neg", "Optional", "OptionalGetElement", "Pad", "ReduceMax", "ReduceMin", "Relu", "Reshape",
        "ReverseSequence", "Scan", "SequenceAt", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose",
        "Trilu", "Unsqueeze", "Where",
    }
)  # fmt: skip
# Attributes that name the element type of a result or of the inner arithmetic.
_TYPE_ATTRIBUTES = frozenset({"dtype", "output_datatype", "output_dtype", "softmax_precision", "stash_type"})


def emulate(skeleton: Skeleton) -> None:
    """Rewrite a loaded model in place so that it has the same inputs, outputs and roundings, and computes in FP32.

    Inputs and outputs of half type keep it (sequences become sequences of FP32). Raises Unverifiable for what cannot
    be emulated, naming the node.
    """
    hoist_large_constants(skeleton.model)
    index = build_index(skeleton)
    types = known_types(index)
    names = NameSource(all_names(index.main))
    halves = {name: _HALVES[text] for name, text in types.items() if text in _HALVES}
    rewrite = _Rewrite(halves, names)
    nodes: dict[int, list[Node]] = defaultdict(list)
    for node in index.nodes:
        nodes[id(node.graph)].append(node)
    # Inner graphs first: the nodes that carry them are copied.
    for graph in reversed(list(walk.graphs(index.main))):
        rewrite.graph(graph, nodes[id(graph)], public=graph is index.main)
    rewrite.border(index.main)


def known_types(index: GraphIndex) -> Types:
    """The type of every value. Raises Unverifiable where an operator's result has none."""
    types = propagate(index, infer(index.model))
    for node in index.nodes:
        for name in node.proto.output:
            if name and name not in types:
                types[name] = _half_of_inputs(node, types)
    return types


def _half_of_inputs(node: Node, types: Types) -> str:
    """An operator without a schema gives the half type that it takes."""
    for name in node.proto.input:
        if types.get(name) in _HALVES:
            return types[name]
    raise Unverifiable(f"nothing tells the type of what node {node.label!r} ({node.op}) gives")


@dataclass(frozen=True, slots=True)
class _Rewrite:
    halves: dict[str, int]
    names: NameSource

    def graph(self, graph: GraphProto, nodes: list[Node], *, public: bool) -> None:
        if any(sparse.values.data_type in _HALF_NUMBERS for sparse in graph.sparse_initializer):
            raise Unverifiable(f"graph {graph.name!r} has sparse weights in half precision")
        rewritten = list(self._weights(graph))
        for node in nodes:
            rewritten.extend(self._node(node))
        fresh = [_copy(proto) for proto in rewritten]
        del graph.node[:]
        graph.node.extend(fresh)
        del graph.value_info[:]
        for value in (*graph.input, *graph.output):
            if not public or value.type.WhichOneof("value") != "tensor_type":
                _retype(value.type)

    def border(self, main: GraphProto) -> None:
        """Casts where the public half inputs come in and the public half outputs go out."""
        inputs = [value.name for value in main.input if value.name in self.halves]
        given = {value.name for value in main.input}
        outputs = [value.name for value in main.output if value.name in self.halves and value.name not in given]
        inner = {name: self.names.fresh(f"{name}/float") for name in (*inputs, *outputs)}
        for graph in walk.graphs(main):
            _rename(graph, inner, public=graph is main)
        entering = [_cast(name, inner[name], _FLOAT) for name in inputs]
        leaving = [_cast(inner[name], name, self.halves[name]) for name in outputs]
        nodes = [*entering, *(_copy(node) for node in main.node), *leaving]
        del main.node[:]
        main.node.extend(nodes)

    def _weights(self, graph: GraphProto) -> Iterator[NodeProto]:
        """Weights stay half where they lie and are widened as they are used."""
        defaults = {value.name for value in graph.input}
        for tensor in graph.initializer:
            if tensor.data_type in _HALF_NUMBERS and tensor.name not in defaults:
                name, tensor.name = tensor.name, self.names.fresh(f"{tensor.name}/half")
                yield _cast(tensor.name, name, _FLOAT)

    def _node(self, node: Node) -> Iterator[NodeProto]:
        proto = node.proto
        if node.is_a("Cast", "CastLike") and node.output in self.halves:
            yield from self._rounded(proto.input[0], node.output)
            return
        _widen_attributes(proto)
        made_exact = [] if node.op in _EXACT else [name for name in proto.output if name in self.halves]
        exact = {name: self.names.fresh(f"{name}/exact") for name in made_exact}
        proto.output[:] = [exact.get(name, name) for name in proto.output]
        yield proto
        for name, source in exact.items():
            yield from self._rounded(source, name)

    def _rounded(self, source: str, target: str) -> Iterator[NodeProto]:
        half = self.names.fresh(f"{target}/half")
        yield _cast(source, half, self.halves[target])
        yield _cast(half, target, _FLOAT)


def _cast(source: str, target: str, to: int) -> NodeProto:
    return helper.make_node("Cast", [source], [target], to=to)


def _copy(proto: NodeProto) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(proto)
    return copy


def _widen_attributes(proto: NodeProto) -> None:
    for attribute in proto.attribute:
        if attribute.name in _TYPE_ATTRIBUTES and attribute.i in _HALF_NUMBERS:
            attribute.i = _FLOAT
        if attribute.type == AttributeProto.TENSOR and attribute.t.data_type in _HALF_NUMBERS:
            values = numpy_helper.to_array(attribute.t).astype("float32")
            attribute.t.CopyFrom(numpy_helper.from_array(values, attribute.t.name))


def _retype(value_type: TypeProto) -> None:
    kind = value_type.WhichOneof("value")
    if kind == "tensor_type" and value_type.tensor_type.elem_type in _HALF_NUMBERS:
        value_type.tensor_type.elem_type = _FLOAT
    elif kind in ("sequence_type", "optional_type"):
        _retype(getattr(value_type, kind).elem_type)


def _rename(graph: GraphProto, names: dict[str, str], *, public: bool) -> None:
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    if public:
        return
    for value in graph.output:
        value.name = names.get(value.name, value.name)
