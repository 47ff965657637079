"""`Content-Digest` and `Repr-Digest` (RFC 9530): what a client says about the bytes it sends."""

import base64
import binascii
import re

from starlette.datastructures import Headers

from service.errors import BadDigest

_MEMBER = re.compile(r"\s*([a-z*][a-z0-9_.*-]*)\s*=\s*:([A-Za-z0-9+/=]*):\s*")
_HEADERS = ("content-digest", "repr-digest")


def declared_digest(headers: Headers) -> str | None:
    """The sha256 (hex) that the headers declare for the body, None if none does. Raises BadDigest.

    Digests by other algorithms are passed over, as the RFC asks. A body without Content-Encoding is its own
    representation, so both headers mean the same here.
    """
    found = {digest for name in _HEADERS for value in headers.getlist(name) for digest in _sha256_of(name, value)}
    if len(found) > 1:
        raise BadDigest("Content-Digest and Repr-Digest declare different sha-256 digests; send one.")
    return found.pop() if found else None


def digest_header(digest: str) -> str:
    """The value of either header for bytes with the sha256 `digest` (hex)."""
    return f"sha-256=:{base64.b64encode(bytes.fromhex(digest)).decode()}:"


def _sha256_of(name: str, value: str) -> list[str]:
    members = [_MEMBER.fullmatch(member) for member in value.split(",")]
    if None in members:
        raise _malformed(name)
    return [_decode(name, match[2]) for match in members if match and match[1] == "sha-256"]


def _decode(name: str, text: str) -> str:
    try:
        digest = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise _malformed(name) from None
    if len(digest) != 32:
        raise _malformed(name)
    return digest.hex()


def _malformed(name: str) -> BadDigest:
    return BadDigest(f"The header {name.title()} is malformed; write `sha-256=:<base64 of the 32 bytes>:`.")
