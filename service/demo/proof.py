"""What is known about an engine, as lines to read: islands with their reasons, dtypes, attention, sizes, times."""

from collections.abc import Iterator
from typing import Any

from service.cli.progress import human_size, proof_lines
from service.engines.types import EngineManifest

_SHOWN_REASONS = 2


def evidence(upload_size: int, manifest: EngineManifest, report: dict[str, Any]) -> Iterator[str]:
    """Lines about one engine; `report` is the precision report of its build."""
    yield f"toolchain      {manifest.toolchain} {manifest.toolchain_version}, {manifest.arch}, {manifest.platform}"
    yield (
        f"sizes          upload {human_size(upload_size)}, converted {human_size(manifest.onnx_size)}, "
        f"engine {human_size(manifest.size)}"
    )
    yield from proof_lines(manifest.proof)
    yield from _islands(report)


def _islands(report: dict[str, Any]) -> Iterator[str]:
    for family, count in report.get("islands_by_family", {}).items():
        islands = [island for island in report["islands"] if island["family"] == family]
        yield f"islands        {count} x {family}: {islands[0]['hazard']}"
        for island in islands[:_SHOWN_REASONS]:
            yield f"                 {island['reason']}"
        if count > _SHOWN_REASONS:
            yield f"                 … and {count - _SHOWN_REASONS} more, each in the report"
