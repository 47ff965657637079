"""TensorRT's log lines, as they are met."""

from typing import Any

import pytest

from worker.engine.messages import MAX_MESSAGES, MessageLog, kind_of, without_noise

NOISE = (
    "[checkMacros.cpp::catchCudaError::250] Error Code 1: Cuda Runtime (In catchCudaError at checkMacros.cpp:250 "
    "(cudaError 35: CUDA driver version is insufficient for CUDA runtime version))"
)


def test_the_noise_of_a_missing_gpu_is_left_out() -> None:
    assert without_noise(f"Invalid Node - a\n{NOISE}") == "Invalid Node - a"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Detected layernorm nodes in FP16.", "norm-overflow"),
        ("Running layernorm after self-attention with FP16 Reduce or Pow may cause overflow.", "norm-overflow"),
        ("Weights [name=w] had the following issues when converted to FP16:", "weights-out-of-range"),
        ("first input has type Float but second input has type Half.", "type-mismatch"),
        ("Error Code 2: OutOfMemory (Requested size was 1024 bytes.)", "out-of-memory"),
        ("Make sure input s has Int64 binding.", None),
    ],
)
def test_messages_that_matter_have_a_kind(text: str, kind: str | None) -> None:
    assert kind_of(text) == kind


def test_each_message_is_kept_and_told_once() -> None:
    told: list[dict[str, Any]] = []
    log = MessageLog(told.append)
    for severity, text in [
        ("warning", "w"),
        ("internal_error", "e"),
        ("error", "e"),
        ("warning", "w"),
        ("info", "i"),
        ("verbose", "v"),
        ("error", NOISE),
    ]:
        log.take(severity, text)
    assert [(message.severity, message.text) for message in log.messages] == [("warning", "w"), ("error", "e")]
    assert told == [
        {"event": "message", "severity": "warning", "text": "w"},
        {"event": "message", "severity": "error", "text": "e"},
    ]
    assert log.errors == ["e"]


def test_a_flood_is_bounded() -> None:
    log = MessageLog(lambda event: None)
    for number in range(2 * MAX_MESSAGES):
        log.take("warning", str(number))
    assert len(log.messages) == MAX_MESSAGES
