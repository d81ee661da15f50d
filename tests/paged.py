"""Report pages in plain data, beside what ``edgefl compare --json`` prints of the same runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from edgefl.analysis.settings import dotted
from edgefl.analysis.summary import summaries
from edgefl.core.documents import document
from edgefl.show.compare import Comparison
from edgefl.show.page.build import page
from edgefl.show.page.records import DRAWN


def compared(*folders: Path, **options: Any) -> dict[str, Any]:
    """What `edgefl compare --json` prints; options are those of ``summaries``."""
    return json.loads(json.dumps(document(Comparison(summaries(list(folders), **options)))))


def paged(*folders: Path, **options: Any) -> dict[str, Any]:
    """A page's records, which its scripts and its text are made of; options are those of ``page``."""
    found = vars(page(list(folders), **options))
    records = {name: document(found[name]) for name in (*DRAWN, "fleets", "provenance")}
    return json.loads(json.dumps(records))


def means(told: dict[str, Any], group: dict[str, Any]) -> dict[str, float | None]:
    """The figures of a page's group by dotted key, as `edgefl compare --json` has them: means over seeds."""
    runs = [told["runs"][place]["run_dir"] for place in group["runs"]]
    if len(runs) == 1:
        return dotted(told["runs"][group["runs"][0]])
    (found,) = [one["figures"] for one in told["averages"] if one["runs"] == runs]
    return {key: value["mean"] for key, value in found.items()}
