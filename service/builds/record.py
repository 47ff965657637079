"""The record of a build, computed from its facts alone."""

from service.builds.facts import BuildFacts, runs
from service.builds.types import Accepted, Attempt, BuildRecord, Finished, Joined, Stage, Status, links_of


def new_record(accepted: Accepted) -> BuildRecord:
    """The record of a build that waits for its first attempt."""
    return BuildRecord(
        id=accepted.id,
        key=accepted.key,
        status=Status.QUEUED,
        stage=Stage.WAITING,
        retry_of=accepted.retry_of,
        group=accepted.group,
        submitter=accepted.submitter,
        created_at=accepted.created_at,
        spec=accepted.spec,
        links=links_of(accepted.id, {}),
    )


def record_from_facts(facts: BuildFacts, build: str) -> BuildRecord | None:
    """What the store alone knows of a build; None where nobody accepted it."""
    accepted = facts.accepted(build)
    if accepted is None:
        return None
    record = new_record(accepted)
    for joined in facts.joined(build):
        record = with_joined(record, joined)
    record = attempted(record, runs(facts.attempts(build)))
    finished = facts.finished(build)
    return ended(record, finished) if finished else record


def attempted(record: BuildRecord, attempts: tuple[Attempt, ...]) -> BuildRecord:
    """A build whose newest attempt has not ended: it runs, as far as facts can tell."""
    if not attempts:
        return record
    return record.evolve(
        status=Status.RUNNING,
        stage=Stage.FETCHING,
        attempt=attempts[-1].n,
        worker=attempts[-1].worker,
        started_at=attempts[-1].started_at,
    )


def requeued(record: BuildRecord) -> BuildRecord:
    """A build that waits again, after its worker died or gave it back."""
    return record.evolve(status=Status.QUEUED, stage=Stage.WAITING, worker=None, progress=None, stages=())


def ended(record: BuildRecord, finished: Finished) -> BuildRecord:
    """The record after its one end. A failed build keeps the stage where it failed."""
    failed_in = finished.stages[-1].name if finished.stages and finished.status is not Status.SUCCEEDED else None
    return record.evolve(
        status=finished.status,
        stage=failed_in,
        attempt=max(record.attempt, finished.attempt),
        worker=finished.worker,
        started_at=finished.started_at,
        finished_at=finished.finished_at,
        stages=finished.stages,
        progress=None,
        expected_seconds=None,
        engine=finished.engine,
        onnx=finished.onnx,
        proof=finished.proof,
        problem=finished.problem,
        links=links_of(record.id, finished.result),
    )


def with_joined(record: BuildRecord, joined: Joined) -> BuildRecord:
    """The first request's labels and webhook stay; what a later one adds is added."""
    spec = record.spec.model_copy(
        update={"labels": joined.labels | record.spec.labels, "webhook": record.spec.webhook or joined.webhook}
    )
    return record.evolve(spec=spec)
