"""The request body of `POST /builds` for OpenAPI: the route reads it itself, so FastAPI cannot know it."""

from typing import Any

from service.builds.types import BuildSpec

_DEFINITION = "#/$defs/"


def request_body() -> dict[str, Any]:
    """What a route's `openapi_extra` takes: a JSON spec, or a form with the model in it."""
    content = {"application/json": {"schema": spec_schema()}, "multipart/form-data": {"schema": _form_schema()}}
    return {"requestBody": {"required": True, "content": content}}


def spec_schema() -> dict[str, Any]:
    """`BuildSpec` in one piece, and with a list of archs allowed, which makes a group."""
    schema = BuildSpec.model_json_schema()
    definitions = schema.pop("$defs", {})
    whole: dict[str, Any] = _inlined(schema, definitions)
    arch = whole["properties"]["arch"]
    one = {key: value for key, value in arch["anyOf"][0].items() if key != "title"}
    arch["anyOf"].insert(1, {"type": "array", "items": one, "minItems": 1, "maxItems": 16})
    return whole


def _form_schema() -> dict[str, Any]:
    file = {"type": "string", "format": "binary"}
    location = "External-data files; each filename is the location in the graph."
    return {
        "type": "object",
        "required": ["model"],
        "properties": {
            "model": {**file, "description": "The .onnx file."},
            "data": {"type": "array", "items": file, "description": location},
            "params": {"type": "string", "description": "The build spec as JSON, without `model`."},
        },
    }


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """References replaced by what they refer to: the names of a body's parts are not those of the document's."""
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref", "")
    if reference.startswith(_DEFINITION):
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_inlined(definitions[reference.removeprefix(_DEFINITION)], definitions), **rest}
    return {key: _inlined(value, definitions) for key, value in schema.items()}
