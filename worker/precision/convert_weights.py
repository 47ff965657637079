"""Weights of the rewritten model: kept, converted, clamped, or several of these, as their readers want."""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from worker.graph.graph import Graph
from worker.graph.names import NameSource
from worker.graph.save import Output
from worker.graph.weights import Conversion, clamp_finite, whole_array
from worker.precision.plan import PrecisionPlan


class Form(Enum):
    """What a reader wants of a weight. The first form in this order keeps the weight's name."""

    FLOAT = "fp32"
    HALF = "half"
    CLAMPED = "clamped"


@dataclass(slots=True)
class Weights:
    """First all readers `ask`; then `name` tells each what to read, and `finish` makes the tensors."""

    graph: Graph
    plan: PrecisionPlan
    names: NameSource
    output: Output = field(init=False)
    asked: dict[str, set[Form]] = field(default_factory=dict)
    given: dict[tuple[str, Form], str] = field(default_factory=dict)
    scalars: dict[float, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.output = Output(self.graph.index.skeleton)

    def ask(self, name: str, form: Form) -> None:
        self.asked.setdefault(name, set()).add(form)

    def name(self, name: str, form: Form) -> str:
        if form is next(known for known in Form if known in self.asked[name]):
            return name
        if (name, form) not in self.given:
            suffix = self.plan.half.name if form is Form.HALF else form.value
            self.given[name, form] = self.names.fresh(f"{name}_{suffix}")
        return self.given[name, form]

    def scalar(self, value: float) -> str:
        """An FP32 scalar initializer of the main graph; made once."""
        if value not in self.scalars:
            self.scalars[value] = self.names.fresh(f"atoll_scalar_{value:g}")
            tensor = numpy_helper.from_array(np.array(value, np.float32), self.scalars[value])
            self.graph.index.main.initializer.append(tensor)
        return self.scalars[value]

    def fill(self, name: str, tensor: TensorProto | None, half: bool) -> TensorProto:
        """The value of a ConstantOfShape that makes `name`; None is its default, zero."""
        values = np.zeros(1, np.float32) if tensor is None else numpy_helper.to_array(tensor)
        limit = self.plan.saturate.get(name)
        if half:
            return _small_half(values, Conversion(self.plan.half, limit), "")
        return tensor if limit is None and tensor is not None else _clamped(values, limit, "")

    def finish(self) -> None:
        """Converts in place, or adds a second tensor; second tensors of equal content are one."""
        shared: dict[str, str] = {}
        first: dict[tuple[int, bytes], str] = {}
        for name, forms in self.asked.items():
            tensor, home = self.graph.index.weights[name], self.graph.index.homes[name]
            made = [self._make(name, tensor, form) for form in Form if form in forms and form is not Form.FLOAT]
            for converted in made:
                if converted.name == name:
                    tensor.CopyFrom(converted)
                    continue
                known = first.setdefault((id(home), self._content(converted)), converted.name)
                if known == converted.name:
                    home.initializer.append(converted)
                else:
                    shared[converted.name] = known
        self._share(shared)

    def _content(self, tensor: TensorProto) -> bytes:
        """Equal for tensors that will hold equal values; the bytes of a large one are known by where they lie."""
        source = self.output.source_of(tensor)
        where = b"" if source is None else repr(source).encode()
        bare = TensorProto(dims=tensor.dims, data_type=tensor.data_type, raw_data=tensor.raw_data)
        return bare.SerializeToString(deterministic=True) + where

    def _share(self, shared: dict[str, str]) -> None:
        if shared:
            for node in self.graph.nodes:
                node.proto.input[:] = [shared.get(name, name) for name in node.proto.input]

    def _make(self, weight: str, tensor: TensorProto, form: Form) -> TensorProto:
        name, limit = self.name(weight, form), self.plan.saturate.get(weight)
        payload = self.output.skeleton.payload(tensor)
        if form is Form.CLAMPED:
            return _clamped(whole_array(self.output.skeleton, tensor), limit, name)
        if payload is None:
            return _small_half(numpy_helper.to_array(tensor), Conversion(self.plan.half, limit), name)
        key = self.output.skeleton.add_payload(payload)
        self.output.conversions[key] = Conversion(self.plan.half, limit)
        converted = TensorProto(
            name=name, dims=tensor.dims, data_type=self.plan.half.onnx, data_location=TensorProto.EXTERNAL
        )
        converted.external_data.add(key="location", value=key)
        return converted


def _small_half(values: NDArray[np.generic], conversion: Conversion, name: str) -> TensorProto:
    flat = conversion.apply(values.reshape(-1).astype(np.float32))
    return TensorProto(name=name, dims=values.shape, data_type=conversion.half.onnx, raw_data=flat.tobytes())


def _clamped(values: NDArray[np.generic], limit: float | None, name: str) -> TensorProto:
    floats = values.astype(np.float32)
    return numpy_helper.from_array(floats if limit is None else clamp_finite(floats, limit), name)
