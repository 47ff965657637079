"""The end of an attempt without an engine: what went wrong, how far it came, and its log."""

from service.builds.types import Attempt, Finished, Status, now
from service.errors import AtollError, InsufficientStorage
from service.store.types import ObjectStore
from worker.journal import Journal


def failed(store: ObjectStore, attempt: Attempt, journal: Journal, error: AtollError) -> Finished:
    """The build failed by `error`, whose problem users see."""
    journal.note(f"failed: {error.detail}")
    return _ended(store, attempt, journal, Status.FAILED).model_copy(update={"problem": error.problem()})


def cancelled(store: ObjectStore, attempt: Attempt, journal: Journal) -> Finished:
    journal.note("cancelled on request")
    return _ended(store, attempt, journal, Status.CANCELLED)


def _ended(store: ObjectStore, attempt: Attempt, journal: Journal, status: Status) -> Finished:
    return Finished(
        status=status,
        attempt=attempt.n,
        started_at=attempt.started_at,
        finished_at=now(),
        worker=attempt.worker,
        stages=journal.stages,
        result=_log_blob(store, journal),
    )


def _log_blob(store: ObjectStore, journal: Journal) -> dict[str, str]:
    try:
        with store.new_blob() as writer:
            writer.write(journal.text().encode())
            return {"log": writer.commit().digest}
    except InsufficientStorage:
        return {}  # the end of the build is worth more than its log
