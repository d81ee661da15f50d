"""The sources of shipped numbers: each has one, says why it is assumed, and has bounds that are priced."""

import re
from collections import Counter
from pathlib import Path

import pytest
from alone import priced
from nightly import sampled
from plans import JOB

from edgefl.core import catalogue
from edgefl.core.corners import at_corners
from edgefl.core.sourced import sourced
from edgefl.planning.fleets import device, link
from edgefl.planning.pricer import Pricer

DEVICES, LINKS = tuple(catalogue.entries("devices")), tuple(catalogue.entries("links"))
FILES = [*((device, name) for name in DEVICES), *((link, name) for name in LINKS)]

# Two words, or a place: a path, an address.
SOURCED = re.compile(r"\w+\W+\w+")
# Why a number is assumed: nothing was found, it is recalled, or it is from elsewhere.
WHY = re.compile(
    r"\b(no|not|nothing|none|recalled|taken|as|likewise|at most|at least|half|twice|scaled|between|idle plus"
    r"|disagree|smallest|stays open)\b"
)
# What a measurement never is.
NOT_MEASURED = re.compile(
    r"\b(recalled|taken|assum\w+|no measurement|not measured|not stated|not published"
    r"|data sheet(?!'s [\d.]+ GB/s)|TDP|power mode)\b"
)
# Numbers without an interval of their own: efficiencies are shares of peaks, and vary for both; the defaults
# of a link; sizes, which admit or refuse but do not cost.
EXEMPT = re.compile(
    r"^((inference\.)?peak\.|handshakes$|loss$|(reserved_|on_chip_)?memory$|battery\.capacity$)"
)


@pytest.mark.parametrize(("load", "name"), FILES)
def test_every_number_has_a_source_of_more_than_a_word(load, name):
    """A place or a reason; an assumed number says why, a measured one is not a data sheet's.

    None is unknown, and what is assumed has bounds where times or energies depend on it.
    """
    for key, number in sourced(load(name)):
        assert number.status != "unknown", key
        assert SOURCED.search(number.source), f"{key} has no source"
        if number.status == "assumed":
            assert WHY.search(number.source), f"{key} does not say why: {number.source}"
        if number.status == "measured":
            assert not NOT_MEASURED.search(number.source), f"{key} was not measured: {number.source}"
        if number.status == "assumed" and type(number).costs() is not None and not EXEMPT.match(key):
            assert number.is_interval, f"{key} has no bounds"


@sampled(8, "name", DEVICES)
def test_time_and_energy_are_bounded(name):
    """On every link, in every number type: least and most are known, and the least is not more."""
    board, behind_all = device(name), [at_corners(link(one)) for one in LINKS]
    for dtype in board.dtypes():
        pricers = [Pricer(name, end, dtype) for end in at_corners(board)]
        for behind in behind_all:
            least, most = (priced(pricer, JOB, end) for pricer, end in zip(pricers, behind, strict=True))
            assert 0 < least.seconds <= most.seconds
            assert 0 <= least.energy.joules <= most.energy.joules


def test_docs_count_the_shipped_numbers():
    """The table of statuses in docs/devices.md has how many shipped numbers have each status."""
    text = (Path(__file__).parents[2] / "docs" / "devices.md").read_text(encoding="utf-8")
    counts = Counter(number.status for load, name in FILES for _, number in sourced(load(name)))
    for status in ("measured", "derived", "assumed", "unknown"):
        (row,) = re.findall(rf"^\| `{status}` \| (\d+) \|", text, re.MULTILINE)
        assert int(row) == counts[status], status
