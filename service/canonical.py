"""Canonical JSON and sha256 digests: the names that content has."""

import hashlib
import json
import re
from typing import Any

DIGEST = re.compile(r"[0-9a-f]{64}")


def canonical_json(value: Any) -> bytes:
    """Sorted keys, no white space, UTF-8: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest_of(data: bytes) -> str:
    """Lower-case hex sha256."""
    return hashlib.sha256(data).hexdigest()


def is_digest(text: str) -> bool:
    return DIGEST.fullmatch(text) is not None
