"""Files written in parallel, in pieces: the same bytes however it is done."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from service.errors import ExternalDataRange
from worker.graph import stream
from worker.graph.chunks import Source
from worker.graph.dtype import BF16, FP16, HalfType
from worker.graph.kernel import Round
from worker.graph.payload import Payload
from worker.graph.stream import Piece, Written, write_pieces
from worker.graph.weights import Conversion

FLOATS = np.random.default_rng(0).normal(0, 0.02, 40_000).astype(np.float32)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "CHUNK_BYTES", 4096)


@pytest.fixture
def pieces(tmp_path: Path) -> list[Piece]:
    """Graph bytes, weights of either half type, one of them tied, and bytes that stay as they are."""
    path = tmp_path / "weights"
    path.write_bytes(b"odd" + FLOATS.tobytes())
    whole = Payload(path, 3, FLOATS.nbytes)
    tied = Source(whole, Conversion(FP16))
    clamped = Source(Payload(path, 7, 20_000), Conversion(BF16, 0.01))
    empty = Source(Payload(path, 3, 0), Conversion(FP16))
    return [b"head", tied, b"", empty, clamped, b"between", tied, Source(whole, None), b"tail"]


def expected() -> bytes:
    half = FLOATS.astype(np.float16).tobytes()
    clamped = FLOATS[1:5001].clip(np.float32(-0.01), np.float32(0.01)).astype(BF16.numpy).tobytes()
    return b"head" + half + clamped + b"between" + half + FLOATS.tobytes() + b"tail"


def write(path: Path, pieces: list[Piece], threads: int | None = None, hashed: bool = False) -> Written:
    with path.open("x+b") as file:
        return write_pieces(file, pieces, threads=threads, hashed=hashed)


@pytest.mark.parametrize("hashed", [False, True], ids=["copied in the kernel", "hashed"])
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_the_bytes_are_the_same_for_any_number_of_threads(
    tmp_path: Path, pieces: list[Piece], threads: int, hashed: bool
) -> None:
    write(tmp_path / "out", pieces, threads, hashed)
    assert (tmp_path / "out").read_bytes() == expected()


def test_the_digest_is_that_of_the_file(tmp_path: Path, pieces: list[Piece]) -> None:
    written = write(tmp_path / "out", pieces, threads=3, hashed=True)
    assert written.digest == hashlib.sha256((tmp_path / "out").read_bytes()).hexdigest()


def test_nothing_is_hashed_unasked(tmp_path: Path, pieces: list[Piece]) -> None:
    assert write(tmp_path / "out", pieces).digest is None


def test_progress_comes_in_the_order_of_the_file_and_ends_with_all_of_it(tmp_path: Path, pieces: list[Piece]) -> None:
    told: list[tuple[int, int]] = []
    with (tmp_path / "out").open("x+b") as file:
        write_pieces(file, pieces, threads=3, on_bytes=lambda done, total: told.append((done, total)))
    size = (tmp_path / "out").stat().st_size
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert {total for _, total in told} == {size}
    assert told[-1] == (size, size)


def test_tied_weights_are_converted_once(tmp_path: Path, pieces: list[Piece], monkeypatch: pytest.MonkeyPatch) -> None:
    converted: list[int] = []

    def counting(half: HalfType, _nbytes: int) -> Round:
        def count(values: NDArray[np.float32]) -> NDArray[np.generic]:
            converted.append(values.nbytes)
            return Conversion(half).apply(values)

        return count

    monkeypatch.setattr(stream, "rounding", counting)
    write(tmp_path / "out", pieces)
    assert sum(converted) == FLOATS.nbytes + 20_000


def test_the_largest_magnitude_of_each_conversion_is_told(tmp_path: Path, pieces: list[Piece]) -> None:
    peaks = write(tmp_path / "out", pieces).peaks
    largest = {source.payload.length: bits for source, bits in peaks.items()}
    assert largest == {FLOATS.nbytes: FP16.bits(float(np.abs(FLOATS).max())), 20_000: BF16.bits(0.01)}


@pytest.mark.parametrize("conversion", [None, Conversion(FP16)], ids=["copied", "converted"])
def test_a_source_that_became_shorter_is_an_error_that_names_it(tmp_path: Path, conversion: Conversion | None) -> None:
    path = tmp_path / "weights"
    path.write_bytes(FLOATS.tobytes())
    source = Source(Payload(path, 0, FLOATS.nbytes + 8192), conversion)
    with pytest.raises(ExternalDataRange, match="weights became shorter"):
        write(tmp_path / "out", [source])
