"""Bodies on their way to the disk: hashed while they arrive, in memory by the megabyte, gone if they end badly."""

from types import TracebackType
from typing import Self

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from service.errors import InvalidName, InvalidRequest, TooLarge, UnsupportedMedia
from service.http.digests import declared_digest
from service.settings import Settings
from service.store.types import Blob, ObjectStore
from service.uploads.form import FormReader, PartBegin, PartData, PartEnd, boundary_of
from service.uploads.names import check_filename
from service.uploads.types import ReceivedFile, ReceivedForm

__all__ = ["receive_body", "receive_form"]

_FLUSH_BYTES = 1 << 20
MAX_DATA_PARTS = 10_000


class _Sink:
    """Gathers small chunks, so that the event loop hands a megabyte at a time to a thread that writes and hashes."""

    def __init__(self, store: ObjectStore) -> None:
        self._writer = store.new_blob()
        self._pending = bytearray()

    async def write(self, data: bytes) -> None:
        self._pending += data
        if len(self._pending) >= _FLUSH_BYTES:
            full, self._pending = self._pending, bytearray()
            await run_in_threadpool(self._writer.write, memoryview(full))

    async def commit(self, expected_digest: str | None = None) -> Blob:
        return await run_in_threadpool(self._finish, expected_digest)

    def _finish(self, expected_digest: str | None) -> Blob:
        self._writer.write(memoryview(self._pending))
        return self._writer.commit(expected_digest)

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)


async def receive_body(request: Request, store: ObjectStore, limit: int) -> Blob:
    """Store the raw body. Raises TooLarge, UnsupportedMedia, BadDigest or DigestMismatch; then nothing was stored."""
    _check_frame(request, limit)
    expected = declared_digest(request.headers)
    size = 0
    with _Sink(store) as sink:
        async for chunk in request.stream():
            size += len(chunk)
            _check_size(size, limit)
            await sink.write(chunk)
        return await sink.commit(expected)


async def receive_form(request: Request, store: ObjectStore, settings: Settings) -> ReceivedForm:
    """Store a form's parts `model` and `data`, and read its `params`.

    Raises BadRequest, InvalidName, InvalidRequest, TooLarge or UnsupportedMedia; then nothing was stored.
    """
    _check_frame(request, settings.max_model_bytes)
    boundary = boundary_of(request.headers.get("content-type", ""))
    if boundary is None:
        raise UnsupportedMedia("Send multipart/form-data with a part `model`, and parts `data` for external data.")
    receiver = _FormReceiver(store, settings.max_json_bytes)
    try:
        await _feed(request, FormReader(boundary), receiver, settings.max_model_bytes)
    except BaseException:  # also when the client goes away or the server stops: what came in goes out
        receiver.discard()
        raise
    return receiver.form()


async def _feed(request: Request, reader: FormReader, receiver: "_FormReceiver", limit: int) -> None:
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        _check_size(size, limit)
        for event in reader.feed(chunk):
            match event:
                case PartBegin(name, filename):
                    receiver.begin(name, filename)
                case PartData(data):
                    await receiver.write(data)
                case PartEnd():
                    await receiver.end()
    reader.finish()


class _FormReceiver:
    """Keeps the parts of one form, of which at most one is being received."""

    def __init__(self, store: ObjectStore, params_limit: int) -> None:
        self._store = store
        self._params_limit = params_limit
        self._params: bytearray | None = None
        self._sink: _Sink | None = None
        self._name = ""
        self._filename = ""
        self._model: ReceivedFile | None = None
        self._data: dict[str, ReceivedFile] = {}

    def begin(self, name: str, filename: bytes | None) -> None:
        self._name = name
        match name:
            case "params" if self._params is None:
                self._params = bytearray()
            case "model" if self._model is None:
                self._open(check_filename(filename or b"model.onnx", name))
            case "data" if len(self._data) < MAX_DATA_PARTS:
                self._open(self._new_location(check_filename(filename or b"", name)))
            case "data":
                raise TooLarge(f"A model may have at most {MAX_DATA_PARTS} external-data files.")
            case "model" | "params":
                raise _refused_part(name, "it was sent twice; send it once")
            case _:
                raise _refused_part(name[:100], "there is no such part; send `model`, `data` and `params` only")

    async def write(self, data: bytes) -> None:
        if self._sink is not None:
            await self._sink.write(data)
            return
        assert self._params is not None
        self._params += data
        if len(self._params) > self._params_limit:
            raise TooLarge(f"The part `params` may have at most {self._params_limit} bytes.", limit=self._params_limit)

    async def end(self) -> None:
        if self._sink is None:
            return
        with self._sink as sink:
            blob = await sink.commit()
        self._sink = None
        self._keep(ReceivedFile(blob, self._filename))

    def _keep(self, file: ReceivedFile) -> None:
        if self._name == "model":
            self._model = file
        else:
            self._data[file.filename] = file

    def discard(self) -> None:
        if self._sink is not None:
            self._sink.__exit__(None, None, None)
        for blob in self.form().blobs:
            self._store.take_back(blob)

    def form(self) -> ReceivedForm:
        params = None if self._params is None else bytes(self._params)
        return ReceivedForm(self._model, tuple(self._data.values()), params)

    def _open(self, filename: str) -> None:
        self._filename = filename
        self._sink = _Sink(self._store)

    def _new_location(self, filename: str) -> str:
        if filename in self._data:
            raise InvalidName(f"Two parts `data` have the file name {filename!r}; each location is sent once.")
        return filename


def _check_frame(request: Request, limit: int) -> None:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise UnsupportedMedia(f"The body is sent with Content-Encoding {encoding[:40]}; send it as it is.")
    length = request.headers.get("content-length", "")
    if length.isascii() and length.isdigit():
        _check_size(int(length[:20]), limit)


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise TooLarge(f"The body is larger than the {limit} bytes that are accepted here.", limit=limit)


def _refused_part(name: str, message: str) -> InvalidRequest:
    return InvalidRequest(
        f"The form's part {name!r} is refused: {message}.", errors=[{"where": f"form.{name}", "message": message}]
    )
