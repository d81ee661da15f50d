"""docs/papers.md has the table that is made of the benchmark's runs; ``--bless`` rewrites it."""

import json
import sys
from pathlib import Path

from pages import check

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import papers

RESULTS = Path(papers.__file__).parent / "results" / "papers.json"


def test_the_runs_are_those_of_the_file(request):
    """Published accuracies beside ours."""
    runs = json.loads(RESULTS.read_text(encoding="utf-8"))["runs"]
    check("papers.md", "runs", papers.tables(runs), request.config)
