"""The API process: its only assembly."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

import service.builds.routes
import service.engines.routes
import service.http.system
import service.models.routes
import service.samples.routes
import service.workers.routes
from service import __version__
from service.builds.repository import BuildProjection
from service.builds.service import BuildService
from service.engines.service import EngineService
from service.http import problems
from service.http.boundary import RequestBoundary
from service.http.context import Services
from service.http.openapi import DescribedAPI
from service.models.service import ModelService
from service.redis import connect
from service.samples.service import SampleService
from service.settings import Settings
from service.store.local import LocalStore
from service.workers.repository import WorkerRepository

__all__ = ["create_app"]

_DESCRIPTION = """FP32 ONNX in; a half-precision graph with FP32 islands, a strongly typed engine and its proof out.

Errors are RFC 9457 `application/problem+json`; `type` is `urn:atoll:problem:<slug>`, `detail` says what to do.
Every response carries `X-Request-ID`."""

_ROUTERS = (
    service.builds.routes.router,
    service.models.routes.router,
    service.samples.routes.router,
    service.engines.routes.router,
    service.workers.routes.router,
    service.http.system.router,
)


def create_app(settings: Settings) -> FastAPI:
    """The API over the store and the Redis that `settings` name. Raises Unavailable if the store cannot be used."""
    services = _services(settings)
    app = DescribedAPI(title="atoll", version=__version__, description=_DESCRIPTION, lifespan=_lifespan)
    app.state.services = services
    app.add_middleware(RequestBoundary)
    problems.install(app)
    for router in _ROUTERS:
        app.include_router(router)
    return app


def _services(settings: Settings) -> Services:
    store = LocalStore(settings.store)
    client = connect(settings)
    models = ModelService(store, settings)
    workers = WorkerRepository(client)
    return Services(
        settings=settings,
        store=store,
        redis=client,
        models=models,
        samples=SampleService(store),
        builds=BuildService(settings, store, client, models, workers),
        engines=EngineService(store, BuildProjection(client)),
        workers=workers,
    )


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    services: Services = app.state.services
    services.builds.start()
    try:
        yield
    finally:
        await run_in_threadpool(services.builds.stop)
        services.redis.close()
