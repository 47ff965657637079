"""What the README tells to paste works when it is pasted."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import Running

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"<!-- walk-through.*?-->\n```bash\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_curl_walk_through_works_when_pasted(server: Running, tmp_path: Path) -> None:
    assert BLOCKS
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", "\n".join(BLOCKS)],
        cwd=tmp_path,
        env={**os.environ, "ATOLL": server.url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "dit.engine: OK" in done.stdout
    assert "'verdict': 'passed'" in done.stdout


@pytest.mark.parametrize("target", ["setup", "demo", "up", "test", "lint"])
def test_every_make_target_that_is_named_exists(target: str) -> None:
    subprocess.run(["make", "--dry-run", target], cwd=ROOT, check=True, capture_output=True)
