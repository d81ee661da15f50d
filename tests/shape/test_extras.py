"""What a user has to install: the extras that messages and pages name."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
_NAMED = re.compile(r"edgefl-emulator\[([\w,]+)\]")


@pytest.mark.parametrize("folder", ["edgefl", "docs"])
def test_extras_that_are_named_exist(folder):
    """In messages and in documentation."""
    texts = [
        path.read_text(encoding="utf-8") for kind in ("*.py", "*.md") for path in (ROOT / folder).rglob(kind)
    ]
    named = {extra for text in texts for found in _NAMED.findall(text) for extra in found.split(",")}
    assert "plot" in named
    assert named <= set(EXTRAS)


def test_each_extra_is_tested():
    """The suite installs all that users may, and a browser's driver."""
    (inside,) = (found for line in EXTRAS["test"] for found in _NAMED.findall(line))
    assert set(inside.split(",")) == set(EXTRAS) - {"test", "dev"}
    assert {"playwright", "axe-playwright-python"} <= {re.split(r"[<>=]", line)[0] for line in EXTRAS["test"]}


def test_pages_need_no_extra():
    """Plotly's script and the templates come with edgefl; Matplotlib and the trackers do not."""
    core = {re.split(r"[<>=]", line)[0] for line in PROJECT["dependencies"]}
    assert "jinja2" in core
    assert not core & {
        "matplotlib",
        "pandas",
        "tensorboard",
        "mlflow",
        "mlflow-skinny",
        "wandb",
        "playwright",
    }
