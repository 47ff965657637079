"""Values that pass between the steps of a build."""

from pathlib import Path

from worker.types import ConvertRequest


def test_the_largest_shapes_are_over_all_profiles() -> None:
    profiles = (
        {"x": ((1, 8), (1, 16), (1, 64)), "y": ((2,), (2,), (2,))},
        {"x": ((1, 8), (4, 16), (4, 32))},
    )
    assert ConvertRequest(Path("a"), Path("b"), profiles=profiles).max_shapes == {"x": (4, 64), "y": (2,)}
