"""A model: an uploaded ONNX graph with its external data."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from service.canonical import canonical_json, digest_of
from service.wire.types import ModelScan


def model_id(graph: str, external_data: dict[str, str]) -> str:
    """The graph's digest if it stands alone, else the digest of the canonical JSON that names all its parts."""
    if not external_data:
        return graph
    return digest_of(canonical_json({"graph": graph, "external_data": external_data}))


class Model(BaseModel):
    """The stored fact `models/<id>`. `external_data` maps the location in the graph to a blob's digest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = 1
    id: str
    name: str
    graph: str
    external_data: dict[str, str]
    size: int
    scan: ModelScan
    created_at: datetime
