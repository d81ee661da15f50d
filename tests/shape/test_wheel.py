"""What an installed edgefl consists of."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHIPPED = ("devices", "profiles", "scenarios", "validation")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None,
    reason="hatchling, which builds the wheel, is not installed",
)


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """The names in the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        return set(opened.namelist())


@pytest.mark.parametrize("kind", SHIPPED)
def test_wheel_carries_the_yaml(names, kind):
    """Every YAML file of the checkout's catalogue is in the wheel, where the catalogue looks."""
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / kind).rglob("*.yaml")}
    assert files
    assert {name for name in names if name.startswith(f"edgefl/shipped/{kind}/")} == {
        f"edgefl/shipped/{name}" for name in files
    }


def test_wheel_carries_the_package(names):
    """Every module is in the wheel, and neither tests nor benchmarks are."""
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "edgefl").rglob("*.py")}
    assert modules <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "docs/"))]
