"""The README's first command."""

from pathlib import Path

import psutil
import pytest

from tests.e2e.conftest import atoll

pytestmark = pytest.mark.slow


def test_the_demo_builds_both_models_and_leaves_nothing(tmp_path: Path, cache: Path, ocr: Path, dit: Path) -> None:
    (tmp_path / ".demo").mkdir()
    (tmp_path / ".demo" / "cache").symlink_to(cache)
    done = atoll("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("succeeded: engine ") == 2
    for engine in ("ch_PP-OCRv4_rec_infer.engine", "audio_dit.engine"):
        assert (tmp_path / ".demo" / engine).stat().st_size > 0
    for expected in ("converting", "islands", "half tensors", "attention", "cosine", "builder", "sizes", "make up"):
        assert expected in done.stdout
    assert [process for process in psutil.process_iter(["cmdline"]) if _of(process, "atoll-demo-")] == []


def test_anyones_model_needs_no_profile(tmp_path: Path, dit: Path) -> None:
    done = atoll("demo", dit, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert 'PROFILE="x=1x64x32:1x64x128:1x64x512 local_add_cond=1x65x32:1x65x128:1x65x512"' in done.stdout


def test_a_suggestion_that_does_not_fit_is_told_with_what_to_give(tmp_path: Path, ocr: Path) -> None:
    """The height of the text line is declared as dynamic, but the graph takes 48 only."""
    done = atoll("demo", ocr, cwd=tmp_path)
    assert done.returncode == 1
    assert "failed: " in done.stdout
    assert done.stdout.count('PROFILE="x=1x3x32x32:1x3x128x128:1x3x512x512"') == 2


def _of(process: psutil.Process, sign: str) -> bool:
    return any(sign in word for word in process.info["cmdline"] or ())
