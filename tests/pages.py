"""Parts of docs pages that are made of the code: between marks, compared or rewritten."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, ["---"] * len(heads), *rows))


def check(page: str, mark: str, text: str, config: pytest.Config) -> None:
    """Compares what a page of docs/ has between its marks with a text, or rewrites it under ``--bless``."""
    path = DOCS / page
    begin, end = f"<!-- {mark}: pytest tests/docs --bless -->\n", "\n<!-- end -->"
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    shown, closed, after = rest.partition(end)
    assert found, f"docs/{page} has no {begin.strip()}"
    assert closed
    if config.getoption("--bless"):
        path.write_text(f"{before}{begin}{text}{end}{after}", encoding="utf-8")
        shown = text
    assert shown.splitlines() == text.splitlines()
