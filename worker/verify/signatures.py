"""Probes inside the graph that say of each tensor what a comparison needs: a sample and a count, not the tensor."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from worker.graph.names import NameSource, all_names

SAMPLE = 4096
"""Elements taken of each tensor: all of a small one, of a large one such that neighbours and channels are mixed."""

OLDEST_OPSET = 9
"""The first with IsNaN."""

_STRIDE = 1_000_003


@dataclass(frozen=True, slots=True)
class Signature:
    """Of one tensor: some of its elements, always at the same places, and how many of all are inf or NaN."""

    sample: NDArray[np.float32]
    nonfinite: int


@dataclass(frozen=True, slots=True)
class Probes:
    """Outputs that were added to a graph, by the value that they tell of."""

    samples: Mapping[str, str]
    counts: Mapping[str, str]

    def read(self, outputs: Mapping[str, Any]) -> dict[str, Signature]:
        """The signatures in what the graph gave."""
        return {
            name: Signature(outputs[sample], int(outputs[self.counts[name]])) for name, sample in self.samples.items()
        }


def add_signatures(model: ModelProto, names: Collection[str]) -> Probes:
    """Add the probes of some FP32 values of the main graph, in place; the graph's other outputs are dropped."""
    writer = _Writer(model, NameSource(all_names(model.graph)))
    constants = writer.constants()
    del model.graph.output[:]
    samples = {name: writer.sample(name, *constants) for name in names}
    counts = {name: writer.count(name) for name in names}
    return Probes(samples, counts)


@dataclass(frozen=True, slots=True)
class _Writer:
    model: ModelProto
    names: NameSource

    def constants(self) -> tuple[str, str, str]:
        """Places, the shape that flattens, and the zero that makes an empty tensor one that can be sampled."""
        places = np.arange(SAMPLE, dtype=np.int64)
        places[SAMPLE // 2 :] *= _STRIDE
        values = (places, np.array([-1], np.int64), np.zeros(1, np.float32))
        return self.constant(values[0]), self.constant(values[1]), self.constant(values[2])

    def constant(self, value: NDArray[Any]) -> str:
        name = self.names.fresh("probe/constant")
        self.model.graph.initializer.append(numpy_helper.from_array(value, name))
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = self.names.fresh(f"probe/{op}")
        self.model.graph.node.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def sample(self, value: str, places: str, flat: str, zero: str) -> str:
        row = self.add("Concat", self.add("Reshape", value, flat), zero, axis=0)
        size = self.add("Size", row)
        beyond = self.add("Mul", self.add("Div", places, size), size)  # Mod takes integers only from opset 10 on
        taken = self.add("Gather", row, self.add("Sub", places, beyond))
        self.model.graph.output.append(helper.make_tensor_value_info(taken, TensorProto.FLOAT, [SAMPLE]))
        return taken

    def count(self, value: str) -> str:
        broken = self.add("IsNaN", self.add("Sub", value, value))
        total = self.add("ReduceSum", self.add("Cast", broken, to=TensorProto.FLOAT), keepdims=0)
        self.model.graph.output.append(helper.make_tensor_value_info(total, TensorProto.FLOAT, []))
        return total
