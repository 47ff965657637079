"""TensorRT's log as values: no noise, no repetition, and a name for what matters."""

import re
from collections.abc import Callable
from typing import Any

from worker.types import BuilderMessage, Severity

# Added to many errors just because no GPU is there; says nothing about the model.
NO_GPU_NOISE = re.compile(r"\[checkMacros\.cpp::catchCudaError.*cudaError 35")
SEVERITIES: dict[str, Severity] = {"internal_error": "error", "error": "error", "warning": "warning"}
MAX_MESSAGES = 500

KINDS = (
    ("norm-overflow", re.compile(r"layernorm.*FP16")),
    ("weights-out-of-range", re.compile(r"(overflow in|[Ss]ubnormal) (FP16|BF16)|when converted to (FP16|BF16)")),
    ("type-mismatch", re.compile(r"first input has type \w+ but second input has type \w+|must have same input types")),
    ("out-of-memory", re.compile(r"OutOfMemory|out of memory|[Ii]nsufficient memory")),
)

Emit = Callable[[dict[str, Any]], None]


def without_noise(text: str) -> str:
    """The lines that speak of the model."""
    return "\n".join(line for line in text.splitlines() if not NO_GPU_NOISE.search(line)).strip()


def kind_of(text: str) -> str | None:
    """The first known kind that a message belongs to."""
    return next((kind for kind, pattern in KINDS if pattern.search(text)), None)


class MessageLog:
    """Takes each warning and error once and passes it on; keeps the first 500 in order."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._kept: dict[tuple[Severity, str], BuilderMessage] = {}

    def take(self, severity: str, text: str) -> None:
        """`severity` is TensorRT's, in lower case; information and below are dropped."""
        known, text = SEVERITIES.get(severity), without_noise(text)
        if known is not None and text:
            self.add(known, text)

    def add(self, severity: Severity, text: str) -> None:
        if (severity, text) in self._kept or len(self._kept) >= MAX_MESSAGES:
            return
        self._kept[severity, text] = BuilderMessage(severity, text, kind_of(text))
        self.tell(severity, text)

    def tell(self, severity: Severity, text: str) -> None:
        """Pass on what belongs into a build's log and says nothing of the model."""
        self._emit({"event": "message", "severity": severity, "text": text})

    @property
    def messages(self) -> tuple[BuilderMessage, ...]:
        return tuple(self._kept.values())

    @property
    def errors(self) -> list[str]:
        return [message.text for message in self.messages if message.severity == "error"]
