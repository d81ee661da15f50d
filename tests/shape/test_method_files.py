"""Methods as files: one each, with its source."""

import ast
import re
from pathlib import Path

import pytest

from edgefl.core import catalogue

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "edgefl" / "methods"
NAMES = tuple(catalogue.entries("methods"))

# A paper, such as "Li et al. 2021"; of those on whose texts the methods are built, the title.
_PAPERS = ("FLex&Chill", "FedCKA", "FedClassAvg", "FedNTD", "SphereFed")
_CITED = re.compile(rf"\b[A-Z][\w'-]+(?: et al\.|, [A-Z]\w+.*?| and [A-Z]\w+)? \d{{4}}|{'|'.join(_PAPERS)}")
_PLACE = re.compile(r"\b(?:Equations?|Eqs?\.|Algorithms?|Sections?|sections?|Tables?|Figure) [\dA-Z]")


@pytest.fixture(params=NAMES)
def file(request) -> Path:
    """One method's file."""
    return catalogue.find("methods", request.param).path


def test_each_method_is_one_file():
    """Beside them there is nothing in their folder: what methods share is in ``edgefl.protocol``."""
    methods = {catalogue.find("methods", name).path.stem for name in NAMES}
    assert {path.stem for path in FOLDER.glob("*.py")} == {*methods, "__init__"}


def test_a_method_names_its_source(file):
    """Its first paragraphs cite a paper, and where in it the method is."""
    doc = " ".join((ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").split())
    assert _CITED.search(doc), doc[:200]
    assert _PLACE.search(doc), doc[:200]
