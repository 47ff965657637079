"""The steps of a build, in their order, and the runner that walks them."""

from collections.abc import Callable
from dataclasses import dataclass

from service.builds.types import BuildSpec, Finished, Stage, Status, now
from service.errors import ChildStopped
from worker.steps.build import build
from worker.steps.check import check
from worker.steps.context import Context, Work
from worker.steps.convert import convert
from worker.steps.fetch import fetch
from worker.steps.inspect import inspect
from worker.steps.publish import publish

__all__ = ["STEPS", "Step", "run_pipeline"]


def _always(spec: BuildSpec) -> bool:  # noqa: ARG001  # the signature of `Step.applies`
    return True


def _makes_engine(spec: BuildSpec) -> bool:
    return spec.output == "engine"


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of a build: what it makes, and for which specs."""

    stage: Stage
    make: Callable[[Context, Work], Work]
    applies: Callable[[BuildSpec], bool] = _always


STEPS = (
    Step(Stage.FETCHING, fetch),
    Step(Stage.CONVERTING, convert),
    Step(Stage.CHECKING, check),
    Step(Stage.BUILDING, build, _makes_engine),
    Step(Stage.INSPECTING, inspect, _makes_engine),
    Step(Stage.PUBLISHING, publish),
)


def run_pipeline(context: Context) -> Finished:
    """The successful end of the attempt, its results published. Raises what its steps raise, and ChildStopped between
    two of them."""
    work = Work(graph=context.source)
    for step in STEPS:
        if step.applies(context.spec):
            if context.should_stop():
                raise ChildStopped(f"The build was stopped before {step.stage.value}.")
            context.journal.begin(step.stage)
            work = step.make(context, work)
    return Finished(
        status=Status.SUCCEEDED,
        attempt=context.attempt.n,
        started_at=context.attempt.started_at,
        finished_at=now(),
        worker=context.attempt.worker,
        stages=context.journal.stages,
        result=dict(work.result),
        engine=work.engine,
        onnx=work.onnx,
        proof=work.proof,
    )
