"""What a network and a serialized engine show of themselves, without a GPU and without loading the engine."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from worker.engine.tensors import dtype_name, tensor_facts
from worker.engine.trt import Network, TensorRT
from worker.types import BuilderMessage, NetworkFacts

CHUNK_BYTES = 8 << 20


def count_mark(engine: Path, mark: bytes, chunk_bytes: int = CHUNK_BYTES) -> int:
    """How often `mark` occurs in a file, read in chunks; occurrences across a border count."""
    count, tail = 0, b""
    for chunk in _chunks(engine, chunk_bytes):
        window = tail + chunk
        count += window.count(mark)
        # One byte short of the mark: nothing that was counted can be counted again.
        tail = window[len(window) - len(mark) + 1 :] if len(window) >= len(mark) else window
    return count


def _chunks(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(size):
            yield chunk


def facts_of(trt: TensorRT, network: Network, messages: tuple[BuilderMessage, ...]) -> NetworkFacts:
    """Types as the strongly typed network has them: the builder keeps to these."""
    return NetworkFacts(
        layers=network.num_layers,
        inputs=tuple(asdict(tensor_facts(network.get_input(index))) for index in range(network.num_inputs)),
        outputs=tuple(asdict(tensor_facts(network.get_output(index))) for index in range(network.num_outputs)),
        tensor_dtypes=dict(Counter(_layer_dtypes(trt, network))),
        messages=messages,
    )


def _layer_dtypes(trt: TensorRT, network: Network) -> Iterator[str]:
    for index in range(network.num_layers):
        layer = network.get_layer(index)
        if layer.type == trt.LayerType.CONSTANT:
            continue
        for output in range(layer.num_outputs):
            yield dtype_name(layer.get_output(output))
