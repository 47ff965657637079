"""The API as typed calls."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from service.builds.types import BuildRecord
from service.canonical import is_digest
from service.client.download import download
from service.client.local_model import LocalModel
from service.client.transport import Transport
from service.engines.types import EngineManifest
from service.errors import AtollError

_LONG_POLL_SECONDS = 25
_PAGE = 100
Value = TypeVar("Value", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Submission:
    """What a submission was answered with; `cached`: the engine was there already and nothing runs."""

    build: BuildRecord
    cached: bool


class AtollClient:
    """One server. Every call raises ProblemError with the server's problem, or Unavailable when it does not answer."""

    def __init__(self, base_url: str) -> None:
        self._transport = Transport(base_url)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def has_model(self, model: str) -> bool:
        return self._transport.head(f"/models/{model}")

    def upload(self, model: LocalModel) -> str:
        """Send a model's files, streamed; returns its id."""
        with ExitStack() as files:
            parts = [("model", (model.path.name, files.enter_context(model.path.open("rb"))))]
            for location, path in model.external.items():
                parts.append(("data", (location, files.enter_context(path.open("rb")))))
            return str(self._transport.post("/models", files=parts).json()["id"])

    def upload_sample(self, path: Path) -> str:
        """Send a file with verification inputs, streamed; returns its digest."""
        with path.open("rb") as file:
            return str(self._transport.post("/samples", content=file).json()["digest"])

    def submit(self, model: str, spec: Mapping[str, Any], idempotency_key: str | None = None) -> Submission:
        """Ask for a build of an uploaded model; `spec` holds BuildSpec's other fields."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        response = self._transport.post("/builds", json={**spec, "model": model}, headers=headers)
        return Submission(_decoded(BuildRecord, response), cached=response.status_code == httpx.codes.OK)

    def get(self, build: str) -> BuildRecord:
        return _decoded(BuildRecord, self._transport.get(f"/builds/{build}"))

    def watch(self, build: str) -> Iterator[BuildRecord]:
        """The record now and after each change, up to and with the terminal one."""
        etag: str | None = None
        while True:
            headers = {"If-None-Match": etag} if etag else {}
            wait = {"wait": _LONG_POLL_SECONDS} if etag else {}
            response = self._transport.get(f"/builds/{build}", params=wait, headers=headers)
            if response.status_code == httpx.codes.NOT_MODIFIED:
                continue
            etag = response.headers.get("ETag")
            record = _decoded(BuildRecord, response)
            yield record
            if record.status.terminal:
                return

    def wait(self, build: str) -> BuildRecord:
        """The terminal record, when it is reached."""
        return list(self.watch(build))[-1]

    def builds(self, **filters: str) -> Iterator[BuildRecord]:
        """All builds that match, newest first, a page at a time."""
        cursor: str | None = None
        while True:
            query = {"limit": _PAGE, **filters, **({"cursor": cursor} if cursor else {})}
            page = self._transport.get("/builds", params=query).json()
            yield from (BuildRecord.model_validate(item) for item in page["items"])
            cursor = page["next"]
            if cursor is None:
                return

    def report(self, build: str) -> dict[str, Any]:
        """The precision report of a build, or of an engine's build when `build` is a digest."""
        kind = "engines" if is_digest(build) else "builds"
        answer: dict[str, Any] = self._transport.get(f"/{kind}/{build}/report").json()
        return answer

    def manifest(self, digest: str) -> EngineManifest:
        return _decoded(EngineManifest, self._transport.get(f"/engines/{digest}/manifest"))

    def download(self, digest: str, target: Path) -> int:
        """Write an engine's bytes to `target`, verified against its digest; returns their number."""
        return download(self._transport, f"/engines/{digest}", digest, target)


def _decoded(kind: type[Value], response: httpx.Response) -> Value:
    try:
        return kind.model_validate_json(response.content)
    except ValidationError as error:
        raise AtollError(
            f"{response.request.url} answered what this client cannot read ({error.error_count()} faults, first: "
            f"{error.errors()[0]['msg']}): install the version of the server"
        ) from None
