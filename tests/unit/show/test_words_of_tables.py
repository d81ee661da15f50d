"""Tables of images and exported models, where tables are made, and the colours of runs."""

import re
from pathlib import Path

from edgefl.show.colours import COLOURS, DASHES, styles


def test_markup_has_no_way_in():
    """Rich's tables are built in one place, but for grids, of texts; consoles say that texts are none."""
    for path in (Path(__file__).parents[3] / "edgefl").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "from_markup" not in text, path
        assert "rich.panel" not in text, path
        assert path.name == "table.py" or "rich.rule" not in text, path
        if path.name != "table.py" and "rich.table" in text:
            assert not re.search(r"\bTable\(", text), path
            assert not re.search(r"add_row\((?!Text\()", text), path
        for call in re.findall(r"(?<!\w)Console\((.+)\)", text):
            assert "markup=False" in call, path


def test_colour_and_dash_tell_48_runs_apart():
    """Eight differ in colour, six in dash, in any order; so do names that are equal, empty or no UTF-8."""
    names = [f"run {number}" for number in range(12)]
    found = dict(zip(names, styles(names), strict=True))
    for shift in range(len(names)):
        turned = [*names[shift:], *names[:shift]][::-1]
        assert dict(zip(turned, styles(turned), strict=True)) == found
    for count in range(1, 49):
        found = styles(["", "", "\udcff", "x" * 10_000, *map(str, range(44))][:count])
        assert len(set(found)) == count == len(found)
        assert len({colour for colour, _ in found}) == min(count, len(COLOURS))
        assert len({dash for _, dash in found}) == min(count, len(DASHES))
