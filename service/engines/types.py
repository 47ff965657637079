"""An engine: a serialized TensorRT plan, and the manifest that says what it is."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from service.builds.types import BuildSpec, Proof, StageTiming


class EngineManifest(BaseModel):
    """The stored fact `engines/<digest>`. Sizes are bytes; blobs are digests."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = 1
    digest: str
    size: int
    key: str
    build: str
    attempt: int
    model: str
    model_name: str
    spec: BuildSpec
    arch: str
    mode: str
    trunk: str
    toolchain: str
    toolchain_version: str
    converter_version: str
    platform: str
    gpu: str | None = None
    driver: str | None = None
    worker: str
    created_at: datetime
    stages: tuple[StageTiming, ...]
    onnx: str
    onnx_size: int
    onnx_data: str | None = None
    onnx_data_name: str | None = None
    report: str
    report_html: str | None = None
    log: str
    proof: Proof
    inspection: dict[str, Any] = {}
    signature: str | None = None
