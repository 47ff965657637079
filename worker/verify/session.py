"""The door to ONNX Runtime: sessions over skeletons, whose weights are mapped from the files that they lie in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnxruntime as ort
from onnx import ModelProto

from worker.graph import walk
from worker.graph.skeleton import Skeleton
from worker.verify.runnable import make_runnable
from worker.verify.types import Unverifiable
from worker.verify.watchdog import Watchdog
from worker.verify.weights import map_weights

Feed = Mapping[str, Any]

_FOLDER_OPTION = "session.model_external_initializers_file_folder_path"
_FATAL = 4
_DTYPES = {"tensor(float)": "float32", "tensor(float16)": "float16"}


class RunFailed(Exception):  # noqa: N818 -- translated by the caller, who knows which graph it was
    """ONNX Runtime could not run a graph that it had loaded; the message is its own."""


class Session:
    """A model that runs as written: not optimised, and rewritten only where ONNX Runtime would refuse it."""

    def __init__(self, skeleton: Skeleton, folder: Path, what: str) -> None:
        """`folder` holds every file with weights; `what` names the model in errors. Raises Unverifiable."""
        self.outputs = [value.name for value in skeleton.model.graph.output]
        make_runnable(skeleton)
        map_weights(skeleton, folder)
        _forget_repeated_names(skeleton.model)
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = _FATAL
        options.add_session_config_entry(_FOLDER_OPTION, str(folder))
        try:
            self._session = ort.InferenceSession(
                skeleton.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime's errors share no public base
            raise Unverifiable(f"ONNX Runtime cannot load the {what}: {_first_line(error)}") from error

    def fitted(self, feed: Feed) -> dict[str, Any]:
        """The feed in the dtypes that the model takes: a converted one may take half where FP32 was."""
        wanted = {value.name: _DTYPES.get(value.type) for value in self._session.get_inputs()}
        return {
            name: values if (dtype := wanted.get(name)) is None else values.astype(dtype, copy=False)
            for name, values in feed.items()
        }

    def run(self, feed: Feed, watchdog: Watchdog) -> dict[str, Any]:
        """Every output by name. Raises RunFailed, or Unverifiable when the watchdog stopped it."""
        options = ort.RunOptions()
        options.log_severity_level = _FATAL
        with watchdog.guard(options):
            try:
                values = self._session.run(self.outputs, dict(feed), options)
            except Exception as error:  # ONNX Runtime's errors share no public base
                watchdog.raise_if_stopped()
                raise RunFailed(_first_line(error)) from error
        return dict(zip(self.outputs, values, strict=True))


def _forget_repeated_names(model: ModelProto) -> None:
    """ONNX lets nodes share a name; ONNX Runtime does not, but takes nodes without one."""
    for graph in walk.graphs(model.graph):
        seen: set[str] = set()
        for node in graph.node:
            if node.name in seen:
                node.name = ""
            seen.add(node.name)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:500]
