"""The names that users build on."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Set as AbstractSet
from importlib import import_module

import edgefl

ERRORS = {"EdgeflError", "RunError", "UserError"}
PUBLIC = ERRORS | {
    *("Callbacks", "Imported", "Progress", "Result", "RunResult"),
    *("bench", "check", "compare", "export", "import_traces", "profile"),
    *("replay", "report", "resume", "run"),
}


def test_public_names():
    """``edgefl`` offers exactly these names, and perhaps its version."""
    assert set(edgefl.__all__) - {"__version__"} == PUBLIC


def test_dir_is_the_public_names_alone():
    """Also after packages were imported, two of which have functions' names; each leads to something."""
    for package in ("cli", "export", "show.page", "runs"):
        import_module(f"edgefl.{package}")
    assert dir(edgefl) == sorted(PUBLIC | {"__version__", "open"})
    for name in dir(edgefl):
        assert getattr(edgefl, name) is not None
        assert not inspect.ismodule(getattr(edgefl, name))


def test_open_is_edgefls_own_and_hides_nobody_elses():
    """``edgefl.open`` reads runs; a star import leaves the built-in function alone."""
    assert next(iter(inspect.signature(edgefl.open).parameters)) == "folder"
    assert "open" in dir(edgefl)
    assert "open" not in edgefl.__all__


def test_errors_are_one_tree():
    """Who catches ``EdgeflError`` catches bad input and failed runs."""
    assert issubclass(edgefl.UserError, edgefl.EdgeflError)
    assert issubclass(edgefl.RunError, edgefl.EdgeflError)


def test_a_wrong_name_is_an_attribute_error():
    """A misspelt name fails as on any module."""
    assert not hasattr(edgefl, "rnu")


_HEAVY = {
    "http.server",
    "matplotlib",
    "mlflow",
    "pandas",
    "perfetto",
    "pyarrow",
    "simpy",
    "tensorboard",
    "torch",
    "torchvision",
    "wandb",
}


def _loaded(code: str, more: AbstractSet[str] = frozenset()) -> set[str]:
    """Which of the heavy packages a fresh interpreter has loaded after ``code``."""
    after = f"import sys; print(*({_HEAVY | more} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{code}\n{after}"], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def _command(*arguments: str) -> str:
    return f"""
import contextlib
from edgefl.cli import main
with contextlib.suppress(SystemExit):
    main({list(arguments)!r})
"""


def test_import_is_light():
    """``import edgefl`` loads neither torch nor SimPy; nor do its functions before they are called."""
    assert _loaded("import edgefl; edgefl.check, edgefl.report, dir(edgefl)") == set()


def test_errors_are_light():
    """The errors can be caught without loading torch."""
    assert _loaded("import edgefl; edgefl.UserError") == set()


def test_help_is_light():
    """``edgefl --help`` answers without them, and so does the help of a command that needs them."""
    assert _loaded(_command("--help"), {"jinja2", "numpy", "pydantic"}) == set()
    code = "".join(_command(name, "--help") for name in ("report", "plot", "table", "compare", "run"))
    assert _loaded(code) == set()


def test_list_is_light():
    """``edgefl list`` reads no code of what it lists."""
    assert _loaded(_command("list")) == set()


def test_show_device_is_light():
    """A device is a YAML file, and showing it needs no torch."""
    assert _loaded(_command("show", "device", "raspberry-pi-5")) == set()
