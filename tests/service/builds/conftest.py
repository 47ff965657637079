"""Builds over the real Valkey and store of the fixtures above; workers are announced, none runs."""

from collections.abc import Callable

import pytest
import redis
from ulid import ULID

from service.builds.repository import BuildRepository
from service.builds.service import BuildService
from service.builds.types import Accepted, BuildSpec, now
from service.models.service import ModelService
from service.settings import Settings
from service.store.local import LocalStore
from service.workers.repository import WorkerRepository
from service.workers.types import ToolchainOffer, WorkerInfo

Accept = Callable[..., Accepted]
OFFER = ToolchainOffer(
    toolchain="tensorrt-rtx", version="1.7.1.116", archs=("portable", "sm_86", "sm_89"), platform="linux-x86_64"
)


@pytest.fixture
def builds(settings: Settings, store: LocalStore, client: redis.Redis) -> BuildRepository:
    return BuildRepository.over(settings, store, client)


@pytest.fixture
def accept(builds: BuildRepository) -> Accept:
    """Accepts a build as a request would leave it, its key being that of the spec."""

    def accepted(*, submitter: str = "anonymous", **spec: object) -> Accepted:
        resolved = {
            "model": "a" * 64,
            "arch": "portable",
            "toolchain": "tensorrt-rtx",
            "toolchain_version": "1.7.1.116",
            **spec,
        }
        build = ULID()
        wanted = BuildSpec.model_validate(resolved)
        fact = Accepted(
            id=str(build),
            key=wanted.key(converter_version="1", platform="linux-x86_64"),
            spec=wanted,
            submitter=submitter,
            platform="linux-x86_64",
            created_at=build.datetime,
        )
        builds.facts.accept(fact)
        return fact

    return accepted


@pytest.fixture
def workers(client: redis.Redis) -> WorkerRepository:
    return WorkerRepository(client)


@pytest.fixture
def announced(workers: WorkerRepository) -> WorkerInfo:
    """A worker that announced itself, so that requests resolve; it does not run."""
    info = WorkerInfo(
        name="w1", host="h", pid=1, offers=(OFFER,), converter_version="1", memory_bytes=1, started_at=now()
    )
    workers.announce(info, 600)
    return info


@pytest.fixture
def service(
    settings: Settings, store: LocalStore, client: redis.Redis, workers: WorkerRepository, announced: WorkerInfo
) -> BuildService:
    """Not started: nothing reconciles behind a test's back."""
    return BuildService(settings, store, client, ModelService(store, settings), workers)


@pytest.fixture
def model(settings: Settings, store: LocalStore, model_bytes: bytes) -> str:
    """The id of an uploaded model with the input `x [N, 4]`."""
    with store.new_blob() as writer:
        writer.write(model_bytes)
        blob = writer.commit()
    return ModelService(store, settings).register(blob, {}, "small.onnx")[0].id
