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


def test_anyones_model_needs_no_profile(tmp_path: Path, ocr: Path) -> None:
    done = atoll("demo", ocr, cwd=tmp_path)
    assert "No profile was given" in done.stdout
    assert 'PROFILE="x=1x3x48x32:1x3x48x128:1x3x48x512"' in done.stdout


def _of(process: psutil.Process, sign: str) -> bool:
    return any(sign in word for word in process.info["cmdline"] or ())
