"""A scan as the rest of atoll sees it: a `ModelScan`, or an error of the tree."""

from collections.abc import Mapping
from pathlib import Path

from service.errors import AtollError, InvalidModel
from service.wire.refusal import WireError
from service.wire.scan import scan
from service.wire.types import ModelScan


def scan_file(path: Path, external: Mapping[str, int] | None = None) -> ModelScan:
    """Scan a file that is trusted not to exhaust this process. `external` maps locations to sizes in bytes;
    for files on this disk it is `FilesBeside`.

    Raises InvalidModel's kinds. For what strangers upload there is `scan_in_child`.
    """
    try:
        return ModelScan.model_validate(scan(path, {} if external is None else external))
    except WireError as refused:
        raise error_of(refused.slug, refused.detail, refused.extensions) from None


def error_of(slug: str, detail: str, extensions: Mapping[str, object]) -> AtollError:
    """The error with this slug among those that a file can be refused with."""
    kinds = {kind.slug: kind for kind in InvalidModel.__subclasses__()}
    return kinds.get(slug, InvalidModel)(detail, **extensions)
