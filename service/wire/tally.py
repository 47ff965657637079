"""What a walk over a model counts."""

from collections import Counter
from dataclasses import dataclass, field

from service.wire.external import Slice
from service.wire.value_info import Value


@dataclass
class Tally:
    """What has been counted so far."""

    ir_version: int | None = None
    producer: bytes = b""
    opsets: list[tuple[bytes, int]] = field(default_factory=list)
    has_graph: bool = False
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    initializers: set[bytes] = field(default_factory=set)
    nodes: int = 0
    operators: Counter[tuple[bytes, bytes]] = field(default_factory=Counter)
    parameters: int = 0
    inline_bytes: int = 0
    dtypes: Counter[str] = field(default_factory=Counter)
    external: list[Slice] = field(default_factory=list)
