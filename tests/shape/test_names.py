"""The names that users build on."""

import inspect
import subprocess
import sys
from collections.abc import Set as AbstractSet
from importlib import import_module

import pytest
from nightly import sampled

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


RUN = """
import edgefl, tempfile
from edgefl.show import charts
short = {"sweep": None, "server.rounds": 1}
edgefl.run("quickstart", overrides=short, engine="null", out=tempfile.mkdtemp() + "/run", progress=False)
"""
DATA = """
from edgefl.core import catalogue
for name in catalogue.entries("datasets"):
    catalogue.load("datasets", name)
import edgefl.models.mlp
"""
READS_IMAGES = {"torchvision", "sklearn", "PIL", "pyarrow"}
TRACKS = {f"edgefl.trackers.{name}" for name in ("mlflow", "tensorboard", "wandb")}


@sampled(
    1,
    ("code", "but", "more"),
    [
        ("import edgefl; edgefl.check, edgefl.report, edgefl.UserError, dir(edgefl)", set(), set()),
        (_command("--help"), set(), {"jinja2", "numpy", "pydantic"}),
        (
            "".join(_command(name, "--help") for name in ("report", "plot", "table", "compare", "run")),
            set(),
            set(),
        ),
        (_command("list") + _command("show", "device", "raspberry-pi-5"), set(), set()),
        (RUN, {"torch", "simpy"}, TRACKS),
        (DATA, {"torch"}, READS_IMAGES),
    ],
    ids=["import", "help", "help of commands", "list and show", "run", "data and models"],
)
def test_what_is_not_needed_is_not_loaded(code, but, more):
    """Neither torch nor SimPy before anything is simulated or trained; no library that is not asked for."""
    assert _loaded(code, more) <= but


@pytest.mark.nightly
def test_who_reads_a_run_needs_no_torch(tmp_path):
    """To load it takes most of a short command's time."""
    short = {"sweep": None, "server.rounds": 1}
    edgefl.run("quickstart", overrides=short, engine="null", out=tmp_path / "run", progress=False)
    run, out = str(tmp_path / "run"), ["--out", str(tmp_path / "run.html")]
    read = [("compare", run), ("report", run, *out), ("explain", run), ("table", run, "jobs")]
    assert _loaded("".join(_command(*one) for one in read)) <= {"simpy", "jinja2"}
