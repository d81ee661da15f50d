"""A report page as one HTML text that needs nothing else: no file beside it and no network."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgefl.core.documents import document
from edgefl.core.files import atomically
from edgefl.core.units import LADDERS
from edgefl.show.page.frames import styles
from edgefl.show.page.records import Page
from edgefl.show.table import visible

if TYPE_CHECKING:
    from jinja2 import Environment

_ASSETS = Path(__file__).parent / "assets"
_SCRIPTS = (
    "base", "numbers", "series", "marks", "tables", "theme", "figures", "live", "start",
)  # fmt: skip
# npm's plotly.js-cartesian-dist-min 4.1.1 as it is: the first lines hold its licence notice (MIT).
_PLOTLY = _ASSETS / "plotly-cartesian.min.js"
_NOTICE_END = "*/"


def html(page: Page) -> str:
    """The page as a text of HTML.

    Names are escaped, data are base64, and only scripts run whose hashes a Content-Security-Policy names.
    """
    script, (plotly, packed) = _script(), _plotly()
    notice = plotly[: plotly.index(_NOTICE_END) + len(_NOTICE_END)]
    return (
        _environment()
        .get_template("page.html")
        .render(
            page=page,
            policy=_policy(),
            written=dt.datetime.now().astimezone() if page.live else None,
            style=(_ASSETS / "style.css").read_text(encoding="utf-8"),
            script=script,
            notice=notice,
            plotly=packed,
            data=_packed(_json({"page": drawn(page)})),
        )
    )


def drawn(page: Page) -> dict[str, Any]:
    """What a page's scripts read, as plain data: runs, groups and plots, which name them by their places."""
    told = page.told
    groups = [
        {"name": one.name, "colour": colour, "dash": dash}
        for one, (colour, dash) in zip(told.groups, styles([one.name for one in told.groups]), strict=True)
    ]
    return {
        "units": LADDERS,
        "runs": [{"group": one.group, "name": told.run_name(run)} for run, one in enumerate(told.runs)],
        "groups": [
            {**one, "runs": [run for run, head in enumerate(told.runs) if head.group == group]}
            for group, one in enumerate(groups)
        ],
        "plots": [
            {"section": section.id, **document(plot)} for section in page.sections for plot in section.plots
        ],
    }


def _json(found: Any) -> str:
    return json.dumps(found, allow_nan=False, separators=(",", ":"))


@cache
def _environment() -> Environment:
    """The templates; all that is put into them is escaped, and its control characters made visible."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    return Environment(
        loader=FileSystemLoader(_ASSETS),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _script() -> str:
    """All scripts but Plotly, in the order in which they run."""
    files = [_ASSETS / f"{name}.js" for name in _SCRIPTS]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@cache
def _plotly() -> tuple[str, str]:
    """Plotly's script, and packed."""
    text = _PLOTLY.read_text(encoding="utf-8")
    return text, _packed(text)


def _packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode("ascii")


def _policy() -> str:
    """What the page may do, as a Content-Security-Policy: run its scripts, and nothing over the network.

    Plotly writes styles into the elements that it makes, which needs 'unsafe-inline' for styles.
    """
    hashes = (
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in (_script(), _plotly()[0])
    )
    return "; ".join(
        [
            "default-src 'none'",
            "script-src " + " ".join(f"'sha256-{one}'" for one in hashes),
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


SUFFIXES = (".html", ".htm")

_LONGEST_NAME = 100


def page_name(folders: Sequence[Path]) -> str:
    """The name of a page of these runs: the first folder's, and how many more there are."""
    return f"{stem_of(folders[0])}{f'-and-{len(folders) - 1}-more' if len(folders) > 1 else ''}.html"


def stem_of(folder: Path) -> str:
    """The name of a file that is made of a folder, without its suffix."""
    return re.sub(r"[^\w.-]+", "-", folder.resolve().name).strip("-.")[:_LONGEST_NAME] or "runs"


def write_page(path: Path, page: Page) -> int:
    """Writes a page, and returns its size in bytes.

    Raises:
        RunError: it cannot be written; a page that is there is unchanged.
    """
    content = html(page).encode("utf-8")
    atomically({path: content})
    return len(content)
