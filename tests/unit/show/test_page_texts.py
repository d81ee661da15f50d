"""Whatever texts a page's records hold, its HTML is the same but for the text, and its data are theirs."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from html.parser import HTMLParser

import pytest
from compared import rich
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.analysis.metrics import Metric
from edgefl.show.page.build import page
from edgefl.show.page.html import data, drawn, html
from edgefl.show.table import Table

# What is no name: keys of documents and words that the page's text depends on.
KEPT = {
    "endings",
    "key",
    "status",
    "engine",
    "edgefl",
    "better",
    "unit",
    "colour",
    "dash",
    "model",
    "order",
    "quantile",
}
ODD = [
    *(
        "",
        "\x00\x07\x1b[31m",
        "\udcff",
        "\u202e\u2067x\u2029",
        "</script><img src=x>",
        "<!--",
        "]]>",
        "{{ x }}",
    ),
    *("\"'><svg onload=x>", "&lt;&#0;", "\n\n \t", "=1+1", "x" * 10_000, "\ufeff\U0001f3c3\u200d"),
]


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A page with something in every section."""
    return page([rich(tmp_path_factory.mktemp("texts") / "rich", sweep={"seed": [1, 2]}).folder])


def renamed(value, text, name=""):
    """The same record with a text behind each of its texts, keys of mappings among them."""
    found = value
    if name in KEPT:
        pass
    elif isinstance(value, str):
        found = value + text
    elif isinstance(value, Metric):
        found = replace(value, label=value.label + text)
    elif isinstance(value, Table):
        found = Table(renamed(value.heads, text), renamed(value.rows, text))
    elif is_dataclass(value):
        own = {one.name: renamed(getattr(value, one.name), text, one.name) for one in fields(value)}
        found = replace(value, **own)
    elif isinstance(value, Mapping):
        # What is known of a device has names of fields.
        inner = (lambda one: one) if name == "devices" else partial(renamed, text=text)
        found = {renamed(key, text): inner(one) for key, one in value.items()}
    elif isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        found = type(value)(renamed(one, text) for one in value)
    return found


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes, in order."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Keeps an element."""
        self.found.append((tag, [name for name, _ in attrs]))


@settings(max_examples=10, deadline=None)
@given(text=st.sampled_from(ODD) | st.text(st.characters(), max_size=40))
def test_texts_are_texts(record, text):
    """No element or attribute comes from a text, no control character is left; the data have it as it is."""
    odd = renamed(record, text)
    found = html(odd)
    found.encode("utf-8")
    assert Elements(found).found == Elements(html(record)).found
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", found)
    packed = re.search(r'id="data">([^<]*)<', found)[1]
    own = json.loads(json.dumps(drawn(odd)))
    assert json.loads(gzip.decompress(base64.b64decode(packed))) == {"page": own}
    assert json.loads(data(odd))["page"] == own
