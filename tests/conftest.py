"""Options, Hypothesis's settings, and who runs what; puts this folder and its helpers on the path."""

import gc
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
import unfinished as boards
from hypothesis import settings
from preloaded import preload
from xdist.scheduler import LoadScopeScheduling

from edgefl.core.notes import note

# A shared machine may stop any example for a while: no deadline. The seed is fixed, so that red is red again.
for _profile, _most in (("day", 10), ("night", 50)):
    settings.register_profile(_profile, deadline=None, derandomize=True, max_examples=_most)


def pytest_configure(config: pytest.Config) -> None:
    """Before any test is imported: more examples where more than the tests of the day are asked for."""
    settings.load_profile("day" if config.option.markexpr == "not nightly" else "night")


class _ByFile(LoadScopeScheduling):
    """A worker runs whole files, and what their tests share is made once; of docs pages, of browser all."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, _ = nodeid.partition("::")
        folder, _, name = file.rpartition("/")
        if name in {"test_examples.py", "test_notebooks.py"}:
            return nodeid
        return folder if folder.endswith("/browser") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByFile:
    """In the order of their names: the many files of few short tests come last."""
    config.option.loadscopereorder = False
    return _ByFile(config, log)


# The reference: what is compared to the last bit must not change with what auto chooses.
os.environ["EDGEFL_ENGINE"] = "loop"

# Before torch is loaded: with small operators a second thread only waits, and xdist keeps all cores busy.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Of all that the libraries load little is ever garbage: Python looks for some at every 700 objects.
gc.set_threshold(20_000, 20, 20)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--bless``."""
    parser.addoption(
        "--bless", action="store_true", help="rewrite the golden files with what the code gives now"
    )


@pytest.fixture(scope="session", autouse=True)
def _environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither read nor fill the user's cache, and print as wide as without a terminal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("COLUMNS", raising=False)
        # typer makes its parser anew for each of the hundreds of commands that are run in this process.
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(autouse=True)
def _notes_are_said_again() -> None:
    """A note is said once a process: what one test is told, another would not be."""
    note.cache_clear()


@pytest.fixture
def unfinished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices that lack numbers are on the path too; see unfinished.py."""
    folders = str(boards.write(tmp_path / "unfinished")), *filter(None, [os.environ.get("EDGEFL_PATH")])
    monkeypatch.setenv("EDGEFL_PATH", os.pathsep.join(folders))


@pytest.fixture
def preloaded_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers and measuring processes start in no time; see preloaded.py."""
    preload(monkeypatch)


@pytest.fixture(scope="session")
def one_registry() -> Iterator[None]:
    """PyTorch's exporter to ONNX parses the sources of its 500 functions once, and not for every file."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(cache(ONNXRegistry.from_torchlib)))
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """(file's name, text): compares with the file beside the test, or rewrites it under ``--bless``."""

    def compare(name: str, text: str) -> None:
        path = Path(request.path).parent / name
        if request.config.getoption("--bless"):
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{name} is missing: run pytest --bless and read what it wrote"
        assert path.read_text(encoding="utf-8").splitlines() == text.splitlines()

    return compare
