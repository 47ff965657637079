"""What routes need, made once by `create_app`."""

from dataclasses import dataclass
from typing import Annotated

import redis
from fastapi import Depends
from starlette.requests import Request

from service.builds.service import BuildService
from service.engines.service import EngineService
from service.models.service import ModelService
from service.samples.service import SampleService
from service.settings import Settings
from service.store.types import ObjectStore
from service.workers.repository import WorkerRepository


@dataclass(frozen=True, slots=True)
class Services:
    """The domains' services over one store and one Redis."""

    settings: Settings
    store: ObjectStore
    redis: redis.Redis
    models: ModelService
    samples: SampleService
    builds: BuildService
    engines: EngineService
    workers: WorkerRepository


def services_of(request: Request) -> Services:
    services = request.app.state.services
    assert isinstance(services, Services)
    return services


ServicesDep = Annotated[Services, Depends(services_of)]
