"""What an installed edgefl consists of."""

import importlib.util
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHIPPED = ("devices", "profiles", "scenarios", "validation")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None,
    reason="hatchling, which builds the wheel, is not installed",
)


def _built(kind, folder):
    """What hatchling builds of a kind."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """The names in the wheel."""
    with zipfile.ZipFile(_built("wheel", tmp_path_factory.mktemp("wheel"))) as opened:
        return set(opened.namelist())


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The names in the source distribution, without its folder."""
    with tarfile.open(_built("sdist", tmp_path_factory.mktemp("sdist"))) as opened:
        return {name.partition("/")[2] for name in opened.getnames()}


def _files(folder, *suffixes):
    """The files in a folder of the checkout that end in one of some ways."""
    found = {path for suffix in suffixes for path in (ROOT / folder).rglob(f"*{suffix}")}
    return {path.relative_to(ROOT).as_posix() for path in found}


@pytest.mark.parametrize("kind", SHIPPED)
def test_wheel_carries_the_yaml(names, kind):
    """Every YAML file of the checkout's catalogue is in the wheel, where the catalogue looks."""
    files = _files(kind, ".yaml")
    assert files
    assert {name for name in names if name.startswith(f"edgefl/shipped/{kind}/")} == {
        f"edgefl/shipped/{name}" for name in files
    }


def test_wheel_carries_the_package(names):
    """Every module is in the wheel, and neither tests nor benchmarks are."""
    assert _files("edgefl", ".py") <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "docs/"))]


@pytest.mark.parametrize("package", ["names", "sources"])
def test_both_carry_what_pages_are_made_of(package, request):
    """Scripts, styles and templates, which are no modules, and carbon's figures."""
    found = request.getfixturevalue(package)
    assets = _files("edgefl/show/page/assets", ".js", ".css", ".html")
    assert {"edgefl/show/page/assets/base.js", "edgefl/show/page/assets/marks.js"} <= assets
    assert assets | _files("edgefl", ".yaml", "py.typed") <= found


def test_sources_carry_the_package_and_the_yaml(sources):
    """From them the wheel can be built again."""
    wanted = _files("edgefl", ".py").union(*(_files(kind, ".yaml") for kind in SHIPPED))
    assert wanted | {"pyproject.toml", "README.md", "LICENSE"} <= sources
