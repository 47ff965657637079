"""Range analysis: how far tensors are from where FP16 ends."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from worker.graph.index import build_index
from worker.graph.load import load
from worker.verify.check import verify
from worker.verify.headroom import CLOSEST, STRIP, float_values, ranges_of
from worker.verify.types import VerifyRequest

Write = Callable[..., Path]


def test_the_closest_to_either_end_are_first(write: Write, tmp_path: Path) -> None:
    text = """g (float[n, 4] x) => (float[n, 4] y) { k = Constant<value = float {1024.0}>()
        [up] a = Mul(x, k) [over] b = Mul(a, k) [under] c = Div(x, b) y = Neg(c) }"""
    path = write(text)
    np.savez(tmp_path / "s.npz", x=np.ones((1, 4), np.float32))
    ranges = verify(VerifyRequest(path, path, samples=(tmp_path / "s.npz",), ranges=True)).ranges
    assert ranges is not None
    assert ranges.tensors == 4
    assert [(one.node, one.largest) for one in ranges.overflow[:2]] == [("over", 2.0**20), ("up", 2.0**10)]
    assert ranges.overflow[0].overflow_bits == pytest.approx(-4, abs=0.01)
    assert ranges.underflow[0].node in ("under", "Neg:y")
    assert ranges.underflow[0].underflow_bits == -6
    assert ranges.strip == (10, 20, -20, -20)


def test_large_graphs_have_bounded_tables(write: Write) -> None:
    chain = " ".join(f"v{at + 1} = Neg(v{at})" for at in range(1000))
    index = build_index(load(write(f"g (float[n] v0) => (float[n] v1000) {{ {chain} }}")))
    names = float_values(index)
    ranges = ranges_of(index, {name: 0.0 if at < 10 else float(at) for at, name in enumerate(names)})
    assert len(ranges.overflow) == len(ranges.underflow) == CLOSEST
    assert len(ranges.strip) <= STRIP
    assert (ranges.strip[0], ranges.stretch) == (None, 4)
    assert ranges.overflow[0].largest == 999


def test_what_is_infinite_in_fp32_has_no_headroom(write: Write) -> None:
    index = build_index(load(write("g (float[n] x) => (float[n] y) { y = Exp(x) }")))
    assert ranges_of(index, {"y": float("inf")}).overflow == ()
