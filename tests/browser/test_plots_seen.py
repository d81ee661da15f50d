"""What one sees of the plots: pages of six kinds of runs, on a wide and on a narrow screen, and planted faults."""

from __future__ import annotations

import pytest
from seen import blank, faults, scrolled, used
from visits import DESKTOP, PHONE

import edgefl
from edgefl.report.page.build import page


def _lossy(crash):
    return {"server.rounds": 3, "fleet": {"like": "home-lab-heavy-tail", "failures": {"crash": crash}}}


# A scenario and what is changed in it. One run of phones has batteries and measures.
PAGES = {
    "one run": (
        "deadline",
        {
            "server.rounds": 4,
            "evaluate.models": ["global", "personal"],
            "evaluate.measures": ["class-accuracy", "personal-accuracy", "logit-entropy"],
            "fleet": "city-phones",
            "sweep": None,
        },
    ),
    "three runs": ("quickstart", {"server.rounds": 2, "evaluate.every": 1}),
    "asynchronous": ("async", {"server.until.bytes": "1 MB"}),
    "most is lost": ("deadline", _lossy(0.9)),
    "all is lost": ("deadline", _lossy(1.0)),
}


@pytest.fixture(scope="session")
def shown(record, tmp_path_factory):
    """(name): a page's record; that of eight runs is the others' of this folder."""
    records = {"eight runs": record}

    def show(name):
        if name not in records:
            scenario, changed = PAGES[name]
            out = tmp_path_factory.mktemp("seen") / "run"
            edgefl.run(scenario, overrides=changed, out=out, progress=False)
            records[name] = page([out])
        return records[name]

    return show


@pytest.mark.parametrize("name", [*PAGES, "eight runs"])
def test_plots_show_what_they_are_of(visit, shown, name):
    """As a reader scrolls by, every picture has its marks inside its axes; on a phone, too."""
    for width in (DESKTOP, PHONE):
        seen = visit(shown(name), width=width, reduced_motion="reduce")
        scrolled(seen)
        assert faults(seen) == []
        assert blank(seen) == []
