"""`atoll worker`: one Celery worker that converts models and builds engines."""

import typer

from service import log
from service.settings import load_settings


def register(app: typer.Typer) -> None:
    app.command()(worker)


def worker() -> None:
    """Run one build worker, against ATOLL_REDIS_URL and ATOLL_STORE."""
    from worker.app import run_worker

    settings = load_settings()
    log.configure(settings.log_level, settings.log_json)
    raise typer.Exit(run_worker(settings))
