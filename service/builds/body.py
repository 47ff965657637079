"""The body of `POST /builds`: a spec, alone or beside an uploaded model, for one arch or a list of them."""

from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from service.builds.types import BuildSpec
from service.canonical import canonical_json, digest_of
from service.errors import InvalidRequest, UnsupportedMedia
from service.http.context import Services
from service.http.json_body import parse_json, read_bounded, validate
from service.http.negotiation import media_type
from service.uploads.receive import receive_form
from service.uploads.types import ReceivedForm

MAX_ARCHS = 16


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A parsed request. `archs` is empty unless a list was sent; `fingerprint` is the same for the same request."""

    spec: BuildSpec
    archs: tuple[str, ...]
    fingerprint: str


async def read_build_request(request: Request, services: Services) -> BuildRequest:
    """The request as JSON, or as a form whose model is registered first.

    Raises MalformedJson, InvalidRequest, TooLarge, UnsupportedMedia, and what registering a model raises.
    """
    media = media_type(request)
    match media:
        case "application/json":
            return parse_build_request(parse_json(await read_bounded(request, services.settings.max_json_bytes)))
        case "multipart/form-data":
            form = await receive_form(request, services.store, services.settings)
            return await run_in_threadpool(_from_form, form, services)
        case _:
            raise UnsupportedMedia(f"Send application/json or multipart/form-data, not {media or 'no Content-Type'}.")


def parse_build_request(value: Any) -> BuildRequest:
    """Raises InvalidRequest, with every field that is wrong."""
    fingerprint = digest_of(canonical_json(value))
    arch = value.get("arch") if isinstance(value, dict) else None
    if not isinstance(arch, list):
        return BuildRequest(validate(value, BuildSpec), (), fingerprint)
    if not 0 < len(arch) <= MAX_ARCHS:
        raise _invalid("arch", f"a list has 1 to {MAX_ARCHS} archs, not {len(arch)}")
    specs = [validate({**value, "arch": item}, BuildSpec) for item in arch]
    return BuildRequest(specs[0], tuple(str(spec.arch) for spec in specs), fingerprint)


def _from_form(form: ReceivedForm, services: Services) -> BuildRequest:
    try:
        params = _params(form)
    except Exception:
        for blob in form.blobs:
            services.store.take_back(blob)
        raise
    assert form.model is not None
    external = {file.filename: file.blob for file in form.data}
    model, _ = services.models.register(form.model.blob, external, form.model.filename)
    return parse_build_request({**params, "model": model.id})


def _params(form: ReceivedForm) -> dict[str, Any]:
    """The form's parameters, checked as far as they can be without the model: a bad form leaves no model behind."""
    if form.model is None:
        raise _invalid("form.model", "send the .onnx file as the part `model`")
    params = {} if form.params is None else parse_json(form.params)
    if not isinstance(params, dict) or "model" in params:
        raise _invalid("form.params", "send a JSON object without `model`: the part `model` is the model")
    parse_build_request({**params, "model": form.model.blob.digest})
    return params


def _invalid(where: str, message: str) -> InvalidRequest:
    return InvalidRequest(f"{where}: {message}.", errors=[{"where": where, "message": message}])
