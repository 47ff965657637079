"""`GET /workers`: who is live, what they build, and how much waits for each arch."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from service.builds.repository import BuildProjection
from service.errors import Unavailable
from service.http.context import ServicesDep
from service.http.etag import tagged_json
from service.http.problems import documented
from service.workers.types import ToolchainOffer, WorkerInfo, queue_name

router = APIRouter(tags=["workers"])


@router.get("/workers", responses=documented(Unavailable), summary="Live workers and the depth of their queues")
def list_workers(request: Request, services: ServicesDep) -> Response:
    projection = BuildProjection(services.redis)
    items = [_body(worker, projection) for worker in services.workers.live()]
    return tagged_json(request, {"items": items, "next": None})


def _body(worker: WorkerInfo, projection: BuildProjection) -> dict[str, Any]:
    depths = {arch: depth for offer in worker.offers for arch, depth in _depths(offer, projection)}
    return {**worker.model_dump(mode="json"), "queue_depth": depths}


def _depths(offer: ToolchainOffer, projection: BuildProjection) -> list[tuple[str, int]]:
    return [(arch, projection.depth(queue_name(offer.toolchain, offer.version, arch))) for arch in offer.archs]
