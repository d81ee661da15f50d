"""The source as a whole: sizes and names; ruff looks for the rest."""

import ast
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "edgefl"
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES_OF_A_FILE = 800
MOST_LINES_OF_A_FUNCTION = 60

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


@pytest.fixture(scope="module")
def sources() -> dict[str, tuple[str, ast.Module]]:
    """The text and the tree of every file of the package, by its path."""
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in FILES}
    return {name: (text, ast.parse(text)) for name, text in texts.items()}


def test_a_file_fits_the_mind(sources):
    """No file has grown too long."""
    lengths = {name: len(text.splitlines()) for name, (text, _) in sources.items()}
    assert {name: lines for name, lines in lengths.items() if lines >= MOST_LINES_OF_A_FILE} == {}


def test_a_function_fits_a_screen(sources):
    """No function has grown too long, its signature, which documents a command's options, not counted."""
    long = {
        (name, node.name): lines
        for name, (_, module) in sources.items()
        for node in ast.walk(module)
        if isinstance(node, Function) and (lines := _length(node)) >= MOST_LINES_OF_A_FUNCTION
    }
    assert long == {}


def _length(node: Function) -> int:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_a_class_has_a_name_of_its_own(sources):
    """No two classes of the package have one name, but the ``Params`` that each component's file has."""
    places = defaultdict[str, list[str]](list)
    for path, (_, module) in sources.items():
        for node in module.body:
            if isinstance(node, ast.ClassDef) and node.name != "Params":
                places[node.name].append(path)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_a_name_means_one_thing_to_a_reader_of_runs(sources):
    """No class or function of analysis and show has another's name, but the doors of sections."""
    names = Counter(
        node.name
        for name, (_, module) in sources.items()
        if name.startswith(("edgefl/analysis/", "edgefl/show/"))
        for node in module.body
        if isinstance(node, Definition)
    )
    assert {name for name, count in names.items() if count > 1} == {"read", "section"}
