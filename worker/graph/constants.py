"""Constant nodes in one form: whatever spelling, a `value` tensor."""

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from worker.graph.walk import graphs

_SHORT_FORMS: dict[str, Callable[[Any], TensorProto]] = {
    "value_float": lambda value: numpy_helper.from_array(np.array(value, np.float32)),
    "value_floats": lambda value: numpy_helper.from_array(np.array(value, np.float32)),
    "value_int": lambda value: numpy_helper.from_array(np.array(value, np.int64)),
    "value_ints": lambda value: numpy_helper.from_array(np.array(value, np.int64)),
    "value_string": lambda value: helper.make_tensor("", TensorProto.STRING, [], [value]),
    "value_strings": lambda value: helper.make_tensor("", TensorProto.STRING, [len(value)], list(value)),
}


def unify_constants(model: ModelProto) -> None:
    """Rewrites `value_float` and its like in place."""
    for graph in graphs(model.graph):
        for node in graph.node:
            if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
                _unify(node)


def _unify(node: NodeProto) -> None:
    for attribute in node.attribute:
        make = _SHORT_FORMS.get(attribute.name)
        if make is not None:
            tensor = make(helper.get_attribute_value(attribute))
            attribute.CopyFrom(helper.make_attribute("value", tensor))
            return
