"""docs/papers.md has the table that is made of the benchmark's runs; ``--bless`` rewrites it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pages import check

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))
import papers


def test_the_runs_are_those_of_the_file(request):
    """Published accuracies beside ours."""
    runs = json.loads((ROOT / "benchmarks" / "results" / "papers.json").read_text(encoding="utf-8"))["runs"]
    check("papers.md", "runs", papers.tables(runs), request.config)
