"""multipart/form-data as events, while the bytes arrive."""

from dataclasses import dataclass

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from service.errors import BadRequest


@dataclass(frozen=True, slots=True)
class PartBegin:
    """A part's name, and the raw bytes of its file's name (None: it has none)."""

    name: str
    filename: bytes | None


@dataclass(frozen=True, slots=True)
class PartData:
    data: bytes


@dataclass(frozen=True, slots=True)
class PartEnd:
    pass


Event = PartBegin | PartData | PartEnd


class FormReader:
    """Turns chunks of a body into events. Raises BadRequest for what is not multipart/form-data."""

    def __init__(self, boundary: bytes) -> None:
        self._events: list[Event] = []
        self._field = bytearray()
        self._value = bytearray()
        self._headers: dict[bytes, bytes] = {}
        self._ended = False
        self._parser = _parser(boundary, self)

    def feed(self, chunk: bytes) -> list[Event]:
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise BadRequest(f"The form cannot be read ({error}); send multipart/form-data.") from None
        events, self._events = self._events, []
        return events

    def finish(self) -> None:
        """Raises BadRequest if the form's end has not arrived."""
        if not self._ended:
            raise BadRequest("The form ends before its last boundary; send it again, whole.")

    def on_part_begin(self) -> None:
        self._headers.clear()

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def on_header_end(self) -> None:
        self._headers[bytes(self._field).lower()] = bytes(self._value)
        self._field.clear()
        self._value.clear()

    def on_headers_finished(self) -> None:
        disposition, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        if disposition != b"form-data" or b"name" not in options:
            raise BadRequest("A part of the form has no `Content-Disposition: form-data; name=…`; add it.")
        name = options[b"name"].decode("utf-8", "replace")
        self._events.append(PartBegin(name, options.get(b"filename")))

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._events.append(PartData(data[start:end]))

    def on_part_end(self) -> None:
        self._events.append(PartEnd())

    def on_end(self) -> None:
        self._ended = True


def boundary_of(content_type: str) -> bytes | None:
    """The boundary of a multipart/form-data body; None for another media type. Raises BadRequest if it is missing."""
    media, options = parse_options_header(content_type)
    if media != b"multipart/form-data":
        return None
    if not options.get(b"boundary"):
        raise BadRequest("The Content-Type multipart/form-data has no boundary; let the HTTP client set it.")
    return options[b"boundary"]


def _parser(boundary: bytes, reader: FormReader) -> MultipartParser:
    try:
        return MultipartParser(
            boundary,
            {
                "on_part_begin": reader.on_part_begin,
                "on_header_field": reader.on_header_field,
                "on_header_value": reader.on_header_value,
                "on_header_end": reader.on_header_end,
                "on_headers_finished": reader.on_headers_finished,
                "on_part_data": reader.on_part_data,
                "on_part_end": reader.on_part_end,
                "on_end": reader.on_end,
            },
        )
    except FormParserError as error:
        raise BadRequest(f"The form cannot be read ({error}).") from None
