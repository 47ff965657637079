"""A copy of an analysed model, to which nodes are added before it is run: roundings to half, and probes."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from worker.graph.dtype import HalfType
from worker.graph.graph import Graph
from worker.graph.index import GraphIndex, build_index
from worker.graph.names import NameSource, all_names
from worker.graph.skeleton import Skeleton


@dataclass(slots=True)
class Workbench:
    """Nodes are placed scope by scope, in the order of the index; `finish` puts them into the model.

    Weights stay where they lie: every copy shares the files of the first.
    """

    index: GraphIndex
    names: NameSource
    _placed: dict[int, list[NodeProto]] = field(default_factory=lambda: defaultdict(list))
    _scalars: dict[float, str] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Graph) -> "Workbench":
        """The copy's nodes have the indices that the graph's have."""
        model = ModelProto()
        model.CopyFrom(graph.model)
        index = build_index(Skeleton(model, dict(graph.index.skeleton.payloads)))
        return cls(index, NameSource(all_names(index.main)))

    def place(self, scope: GraphProto, node: NodeProto) -> None:
        self._placed[id(scope)].append(node)

    def add(self, scope: GraphProto, op: str, inputs: list[str], wish: str, **attributes: Any) -> str:
        """Places a node that makes one value; the value's name."""
        name = self.names.fresh(wish)
        self.place(scope, helper.make_node(op, inputs, [name], **attributes))
        return name

    def round(self, scope: GraphProto, source: str, target: str, half: HalfType) -> None:
        """`target` becomes the FP32 value of `source` rounded to half."""
        rounded = self.add(scope, "Cast", [source], f"{target}/half", to=half.onnx)
        self.place(scope, helper.make_node("Cast", [rounded], [target], to=TensorProto.FLOAT))

    def clamp(self, scope: GraphProto, name: str, low: float, high: float | None = None) -> str:
        """Finite values within the limits; infinite ones as they are."""
        infinite = self.add(scope, "IsInf", [name], f"{name}/infinite")
        clamped = self.add(scope, "Max", [name, self._scalar(low)], f"{name}/above")
        if high is not None:
            clamped = self.add(scope, "Min", [clamped, self._scalar(high)], f"{name}/within")
        return self.add(scope, "Where", [infinite, name, clamped], f"{name}/clamped")

    def show(self, name: str, dtype: int) -> None:
        """Makes a value of the main graph an output."""
        self.index.main.output.append(helper.make_tensor_value_info(name, dtype, None))

    def close(self, scope: GraphProto) -> None:
        """Puts what was placed into the scope; a subgraph's before the node that carries it is copied."""
        nodes = [NodeProto.FromString(node.SerializeToString()) for node in self._placed.pop(id(scope), ())]
        del scope.node[:], scope.value_info[:]
        scope.node.extend(nodes)

    def finish(self) -> Skeleton:
        """The model with what was placed. The bench must not be used afterwards."""
        self.close(self.index.main)
        return self.index.skeleton

    def _scalar(self, value: float) -> str:
        if value not in self._scalars:
            self._scalars[value] = self.names.fresh(f"limit {value:g}")
            tensor = numpy_helper.from_array(np.array(value, np.float32), self._scalars[value])
            self.index.main.initializer.append(tensor)
        return self._scalars[value]
