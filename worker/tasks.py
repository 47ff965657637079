"""The one Celery task. It takes the id of a build; everything else is read from the facts."""

from collections.abc import Callable

from celery import Celery

from service.broker import BUILD_TASK
from worker.runner import Runner


def register(app: Celery, runner: Callable[[], Runner]) -> None:
    """`runner` is asked in the process that runs the task."""

    def run_build(build: str) -> None:
        runner().run(build)

    app.task(name=BUILD_TASK)(run_build)
