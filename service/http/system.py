"""`/healthz`, `/readyz` and `/version`."""

from collections.abc import Callable
from typing import Any

import redis.exceptions
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from service import __version__, log
from service.errors import AtollError, Unavailable
from service.http.context import Services, ServicesDep
from service.http.etag import tagged_json
from service.http.problems import documented
from service.workers.types import WorkerInfo

router = APIRouter(tags=["system"])

_log = log.get(__name__)


@router.get("/healthz", summary="Whether the process answers")
async def healthz() -> Response:
    return JSONResponse({"status": "ok"})


@router.get("/readyz", responses=documented(Unavailable), summary="Whether requests can be served, and if not, why")
def readyz(services: ServicesDep) -> Response:
    """Ready even without workers: they may come later. `checks` has a reason for each failure."""
    checks = {"redis": _check(lambda: _ping(services)), "store": _check(lambda: _write(services))}
    failed = {name: reason for name, reason in checks.items() if reason is not None}
    if failed:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
        raise Unavailable(f"Not ready. {reasons}.", checks={name: reason or "ok" for name, reason in checks.items()})
    return JSONResponse({"status": "ready", "checks": dict.fromkeys(checks, "ok")})


@router.get("/version", responses=documented(Unavailable), summary="Versions, and the archs that live workers build")
def version(request: Request, services: ServicesDep) -> Response:
    workers = services.workers.live()
    body = {
        "version": __version__,
        "converter_versions": sorted({worker.converter_version for worker in workers}),
        "toolchains": _toolchains(workers),
        "archs": sorted({arch for worker in workers for offer in worker.offers for arch in offer.archs}),
    }
    return tagged_json(request, body)


def _toolchains(workers: tuple[WorkerInfo, ...]) -> list[dict[str, Any]]:
    archs: dict[tuple[str, str, str], set[str]] = {}
    for offer in (offer for worker in workers for offer in worker.offers):
        archs.setdefault((offer.toolchain, offer.version, offer.platform), set()).update(offer.archs)
    return [
        {"toolchain": toolchain, "version": version, "platform": platform, "archs": sorted(found)}
        for (toolchain, version, platform), found in sorted(archs.items())
    ]


def _check(attempt: Callable[[], object]) -> str | None:
    try:
        attempt()
    except (AtollError, redis.exceptions.RedisError, OSError) as error:
        _log.warning("not ready", action="http.not-ready", error=str(error))
        return str(error)
    return None


def _ping(services: Services) -> None:
    services.redis.ping()


def _write(services: Services) -> None:
    with services.store.new_blob() as writer:
        writer.write(b"ready")
