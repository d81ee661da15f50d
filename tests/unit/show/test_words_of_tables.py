"""Tables of images and exported models, where tables are made."""

import re
from pathlib import Path


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
