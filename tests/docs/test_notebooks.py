"""docs/notebooks/*.ipynb do what they say: their cells are run, and what they print and show is compared.

Cells of one notebook share a namespace and a directory, which is on ``EDGEFL_PATH``. ``--bless`` rewrites
their outputs. Of a figure, only that there is one is compared; of a cell with the tag ``varies``, nothing.
"""

import ast
import base64
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))

TYPES = {"text/html": "_repr_html_", "image/png": "_repr_png_"}
"""What a notebook shows of a value beside its text, and the method that it asks."""


def shown(value: object) -> dict[str, Any]:
    """A value as a notebook's cell keeps it, by media type."""
    found = {"text/plain": lines(repr(value))}
    for media, method in TYPES.items():
        made = getattr(value, method, lambda: None)()
        if isinstance(made, bytes):
            found[media] = base64.b64encode(made).decode()
        elif made is not None:
            found[media] = lines(made)
    return found


def lines(text: str) -> list[str]:
    """A text as the format has it."""
    return text.splitlines(keepends=True)


def execute(source: str, names: dict[str, object], place: str, count: int) -> list[dict[str, Any]]:
    """The outputs of a cell: what it prints, and the value of a last line that is an expression."""
    printed, value = io.StringIO(), None
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), place, "exec"), names)  # noqa: S102
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), place, "eval"), names)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        kind = {"execution_count": count, "metadata": {}, "output_type": "execute_result"}
        outputs.append({"data": shown(value), **kind})
    return outputs


def comparable(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What must not change: all but a figure's pixels, which depend on fonts."""
    return [
        {**one, "data": {**one["data"], "image/png": "..."}} if "image/png" in one.get("data", ()) else one
        for one in outputs
    ]


@pytest.mark.nightly
@pytest.mark.usefixtures("one_registry")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_gives(path, tmp_path, monkeypatch, request):
    """Every code cell runs, in order, and gives the outputs that the file has."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, object] = {"__name__": "__main__"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(code, start=1):
        outputs = execute("".join(cell["source"]), names, f"{path.name}, cell {count}", count)
        if request.config.getoption("--bless"):
            cell["outputs"], cell["execution_count"] = outputs, count
        elif "varies" not in cell["metadata"].get("tags", ()):
            assert comparable(cell["outputs"]) == comparable(outputs), f"cell {count}: run pytest --bless"
    if request.config.getoption("--bless"):
        text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
        path.write_text(f"{text}\n", encoding="utf-8")


def test_notebooks_are_small():
    """What they embed stays below what a page should load."""
    assert sum(path.stat().st_size for path in NOTEBOOKS) < 200_000
