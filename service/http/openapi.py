"""The API's description: every error is a problem, also those that the framework would describe as its own."""

from typing import Any

from fastapi import FastAPI

from service.errors import AtollError, InvalidRequest, Problem
from service.http.problems import documented

_PROBLEM = "Problem"
_FRAMEWORKS_OWN = ("HTTPValidationError", "ValidationError")


class DescribedAPI(FastAPI):
    """A FastAPI whose `/openapi.json` knows what `service.http.problems` answers."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = _with_problems(super().openapi())
        return self.openapi_schema


def _with_problems(schema: dict[str, Any]) -> dict[str, Any]:
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    for name in _FRAMEWORKS_OWN:
        schemas.pop(name, None)
    schemas[_PROBLEM] = Problem.model_json_schema()
    for path in schema["paths"].values():
        for operation in path.values():
            _complete(operation["responses"])
    return schema


def _complete(responses: dict[str, Any]) -> None:
    """Any route may fail unexpectedly; those with parameters may be sent wrong ones."""
    common = documented(AtollError, InvalidRequest)
    responses.setdefault("500", common[500])
    if "application/json" in responses.get("422", {}).get("content", {}):
        responses["422"] = common[422]
