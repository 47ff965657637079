"""The Celery worker of a build node: one slot, its queues, its beat, and a shutdown that loses nothing."""

import mmap
import os
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

from celery import Celery, signals
from celery.worker import state
from kombu.entity import Queue

from service import broker, log, redis
from service.builds.repository import BuildRepository, queue_of
from service.builds.types import BuildRecord
from service.errors import CommandError
from service.settings import Settings
from service.store.local import LocalStore
from service.workers.repository import WorkerRepository
from service.workers.types import ToolchainOffer, WorkerInfo, queue_name
from worker import tasks
from worker.announce import Announcer, worker_info
from worker.child.confine import confine
from worker.engine.toolchains import available_toolchains
from worker.runner import Runner

# Of the host's memory; the rest is for the worker itself and for what else runs there.
_CHILD_SHARE = 0.9

_log = log.get(__name__)


class SharedFlag:
    """A flag shared with the children that are forked later. Setting it takes no lock, so a signal handler may."""

    def __init__(self) -> None:
        self._byte = mmap.mmap(-1, 1)

    def set(self) -> None:
        self._byte[0] = 1

    def is_set(self) -> bool:
        return self._byte[0] == 1


def run_worker(settings: Settings) -> int:
    """Work until SIGTERM or SIGINT; the exit code. A build that runs then is handed back within seconds.

    Raises CommandError on a machine that can build nothing.
    """
    info = worker_info(_offers())
    stopping = SharedFlag()
    app = make_app(settings, info.offers)
    tasks.register(app, cache(partial(_runner, settings, info, stopping, app)))
    announcer = Announcer(
        WorkerRepository(redis.connect(settings)),
        info,
        beat_seconds=settings.heartbeat_seconds,
        life_seconds=settings.lease_seconds,
        current_build=_current_build,
    )
    _connect_signals(announcer, stopping)
    worker = app.Worker(
        hostname=f"atoll@{info.name}",
        pool="prefork",
        concurrency=1,
        loglevel=settings.log_level,
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    _log.info("worker starts", action="worker.start", worker=info.name, queues=[q.name for q in _queues(info.offers)])
    worker.start()
    announcer.join()
    return int(worker.exitcode or 0)


def make_app(settings: Settings, offers: Sequence[ToolchainOffer]) -> Celery:
    """A worker's app: it reserves only what it runs, and acknowledges only what it has run."""
    app = broker.celery_app(settings, "atoll-worker")
    app.conf.update(
        task_queues=_queues(offers),
        task_acks_late=True,
        worker_prefetch_multiplier=1,
        # A build outlives a restart of Redis: its lease and its fence are what counts, not the connection.
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_proc_alive_timeout=60.0,
    )
    return app


def _offers() -> tuple[ToolchainOffer, ...]:
    offers = available_toolchains()
    if not offers:
        raise CommandError("no toolchain can build here; `atoll doctor` says why and what to install")
    return offers


def _queues(offers: Sequence[ToolchainOffer]) -> list[Queue]:
    """One for each toolchain, version and arch; ahead-of-time builders also take engines for several archs."""
    names = {queue_name(offer.toolchain, offer.version, arch) for offer in offers for arch in offer.archs}
    several = {queue_name(offer.toolchain, offer.version, "+") for offer in offers if offer.gpu is None}
    return [Queue(name) for name in sorted(names | several)]  # type: ignore[no-untyped-call]


def _runner(settings: Settings, info: WorkerInfo, stopping: SharedFlag, app: Celery) -> Runner:
    """Made in the pool's process: connections do not survive a fork."""

    def ring(record: BuildRecord) -> None:
        broker.ring(app, record.id, queue_of(record), record.spec.priority)

    store = LocalStore(settings.store)
    return Runner(
        settings=settings,
        store=store,
        builds=BuildRepository.over(settings, store, redis.connect(settings)),
        worker=info.name,
        memory_bytes=int(info.memory_bytes * _CHILD_SHARE),
        stopping=stopping.is_set,
        ring=ring,
    )


def _current_build() -> str | None:
    return next((str(request.args[0]) for request in list(state.active_requests) if request.args), None)


def _connect_signals(announcer: Announcer, stopping: SharedFlag) -> None:
    def ready(**_: Any) -> None:
        announcer.start()

    def shutting_down(**_: Any) -> None:
        stopping.set()
        announcer.end()

    def pool_process_starts(**_: Any) -> None:
        confine(os.getppid())  # the slot dies with its worker, and what it runs dies with it

    def keep_logging(**_: Any) -> None:
        """A receiver is all it takes: Celery then leaves the configured logging alone."""

    signals.worker_ready.connect(ready, weak=False)
    signals.worker_shutting_down.connect(shutting_down, weak=False)
    signals.worker_process_init.connect(pool_process_starts, weak=False)
    signals.setup_logging.connect(keep_logging, weak=False)
