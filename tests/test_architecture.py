"""The arrows and the sizes of the rooms."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from service.settings import Settings

ROOT = Path(__file__).parents[1]
MODULES = sorted(path for package in ("service", "worker") for path in (ROOT / package).rglob("*.py"))
LONGEST_MODULE = 400
LONGEST_FUNCTION = 60
ENVIRONMENT_READERS = ('os.environ["ATOLL', 'os.environ.get("ATOLL', "os.getenv(", "envvar=")


def test_import_contracts_hold() -> None:
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module_is_small_and_says_what_it_is(path: Path) -> None:
    source = path.read_text()
    assert len(source.splitlines()) <= LONGEST_MODULE
    tree = ast.parse(source)
    assert not source.strip() or ast.get_docstring(tree)
    lengths = {
        node.name: (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION} == {}


def test_only_the_settings_read_the_environment() -> None:
    """Passing the environment on to a child is no reading; `getenv` and lookups by name are."""
    readers = [
        str(path.relative_to(ROOT)) for path in MODULES if any(sign in path.read_text() for sign in ENVIRONMENT_READERS)
    ]
    assert readers == []


def test_every_setting_is_documented() -> None:
    documented = (ROOT / "docs" / "index.md").read_text()
    missing = [name for name in Settings.model_fields if f"`ATOLL_{name.upper()}`" not in documented]
    assert missing == []
