"""Forms: which parts are received, which are refused, and what is left then."""

import httpx
import pytest

from service.store.local import LocalStore
from service.uploads.form import FormReader, PartBegin, PartData, PartEnd
from service.uploads.names import base_name, check_filename

BOUNDARY = "b0undary"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def part(name: str, data: bytes = b"x", filename: str | bytes | None = None) -> bytes:
    raw = filename.encode() if isinstance(filename, str) else filename
    suffix = b"" if raw is None else b'; filename="' + raw + b'"'
    head = b'Content-Disposition: form-data; name="' + name.encode() + b'"' + suffix
    return f"--{BOUNDARY}\r\n".encode() + head + b"\r\n\r\n" + data + b"\r\n"


END = f"--{BOUNDARY}--\r\n".encode()

REFUSED = {
    "unknown part": (part("weights", b"", "w") + END, 422, "invalid-request", "'weights'"),
    "two models": (part("model", b"", "a") + part("model", b"", "b") + END, 422, "invalid-request", "twice"),
    "params for a model": (part("model", b"", "a") + part("params", b"{}") + END, 422, "invalid-request", "params"),
    "two params": (part("params") + part("params") + END, 422, "invalid-request", "twice"),
    "no model": (part("data", b"", "w") + END, 422, "invalid-request", "form.model"),
    "data without a name": (part("data") + END, 400, "invalid-name", "missing"),
    "data twice": (part("data", b"1", "w") + part("data", b"2", "w") + END, 400, "invalid-name", "Two parts"),
    "no end": (part("model", b"", "a"), 400, "bad-request", "last boundary"),
    "cut inside a part": (part("model", b"1234567890", "a")[:-6], 400, "bad-request", "last boundary"),
    "no disposition": (f"--{BOUNDARY}\r\nX: y\r\n\r\nz\r\n".encode() + END, 400, "bad-request", "Content-Disposition"),
    "name with NUL": (part("data", b"", "a\0b") + END, 400, "invalid-name", "U+0000"),
    "name with newline": (part("data", b"", b"a\x0bb") + END, 400, "invalid-name", "U+000B"),
    "name with escape": (part("data", b"", "\x1b[31m") + END, 400, "invalid-name", "U+001B"),
    "name with bidi": (part("data", b"", "a\u202egnp") + END, 400, "invalid-name", "U+202E"),
    "name not UTF-8": (part("data", b"", b"\xff") + END, 400, "invalid-name", "UTF-8"),
    "name with dots": (part("data", b"", "../w") + END, 400, "invalid-name", "relative"),
    "absolute name": (part("data", b"", "/etc/passwd") + END, 400, "invalid-name", "relative"),
    "drive": (part("data", b"", "C:w") + END, 400, "invalid-name", "relative"),
    "long name": (part("data", b"", "n" * 1025) + END, 400, "invalid-name", "1025"),
}


@pytest.mark.parametrize(("body", "status", "slug", "detail"), REFUSED.values(), ids=REFUSED)
def test_a_form_that_is_not_right_is_refused_and_leaves_nothing(
    api: httpx.Client, store: LocalStore, body: bytes, status: int, slug: str, detail: str
) -> None:
    response = api.post("/models", content=body, headers=FORM)
    assert (response.status_code, response.json()["type"]) == (status, f"urn:atoll:problem:{slug}")
    assert detail in response.json()["detail"]
    assert [*store.list("blobs/"), *store.tmp.iterdir()] == []


def test_params_are_bounded(api: httpx.Client, store: LocalStore) -> None:
    response = api.post("/models", content=part("params", bytes(2 << 20)) + END, headers=FORM)
    assert response.status_code == 413
    assert "params" in response.json()["detail"]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_form_reads_the_same_however_it_is_cut(size: int) -> None:
    payload = b"\r\n--b0undar\r\n-" * 20
    body = part("model", payload, "m.onnx") + part("params", b"{}") + END
    reader = FormReader(BOUNDARY.encode())
    events = [event for start in range(0, len(body), size) for event in reader.feed(body[start : start + size])]
    reader.finish()
    assert [event for event in events if isinstance(event, PartBegin)] == [
        PartBegin("model", b"m.onnx"),
        PartBegin("params", None),
    ]
    assert b"".join(event.data for event in events if isinstance(event, PartData)) == payload + b"{}"
    assert events[-1] == PartEnd()


@pytest.mark.parametrize(("name", "base"), [("a.onnx", "a"), ("dir/a b.onnx", "a b"), ("é", "é"), ("x.y.onnx", "x.y")])
def test_a_model_is_called_like_its_file(name: str, base: str) -> None:
    assert base_name(check_filename(name.encode(), "model")) == base
