"""What a user has to install: the extras that messages and pages name."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
OURS = {"test", "nightly", "dev"}
_NEEDS = re.compile(r'needs\("(\w+)", f?"[^"]+"(?:, "(\w+)")?')
_NAMED = re.compile(r"edgefl-emulator\[([\w,]+)\]")


def _texts(folder, suffix):
    return [path.read_text(encoding="utf-8") for path in (ROOT / folder).rglob(f"*{suffix}")]


def test_extras_that_are_named_exist():
    """In messages and in documentation; every extra of users' is named in a message."""
    named = [found for text in _texts("docs", ".md") for found in _NAMED.findall(text)]
    assert {extra for found in named for extra in found.split(",")} <= set(EXTRAS)
    asked = [found for text in _texts("edgefl", ".py") for found in _NEEDS.findall(text)]
    assert {extra or module for module, extra in asked} == set(EXTRAS) - OURS


def test_each_extra_is_tested():
    """The suites of the day and of the night together install all that users may."""
    inside = [
        found for suite in ("test", "nightly") for line in EXTRAS[suite] for found in _NAMED.findall(line)
    ]
    assert {extra for found in inside for extra in found.split(",")} - OURS == set(EXTRAS) - OURS
