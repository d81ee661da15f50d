"""Whatever texts a page holds, its HTML is the same but for the text, and its data are theirs."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser

import pytest
from compared import rich
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.show.page.build import page
from edgefl.show.page.frames import Frame, Plot
from edgefl.show.page.html import drawn, html
from edgefl.show.page.records import Told

# What is no name: words that the page's scripts and its text depend on.
KEPT = {"id", "colour", "dash", "sign", "edgefl", "mark", "runs", "unit"}
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
    """The same page with a text behind each of its texts."""
    found = value
    if name in KEPT:
        pass
    elif isinstance(value, str):
        # What is not said stays unsaid.
        found = value and value + text
    elif isinstance(value, Plot):
        blocks = [renamed(one, text) for one in value.frame.blocks]
        found = replace(value, title=value.title + text, frame=Frame(value.frame.columns, blocks))
    elif isinstance(value, Told):
        found = replace(value, groups=[replace(one, name=one.name + text) for one in value.groups])
    elif is_dataclass(value):
        own = {one.name: renamed(getattr(value, one.name), text, one.name) for one in fields(value)}
        found = replace(value, **own)
    elif hasattr(value, "_fields"):
        found = value._replace(**{one: renamed(getattr(value, one), text, one) for one in value._fields})
    elif isinstance(value, Mapping):
        found = {key: renamed(one, text, key) for key, one in value.items()}
    elif isinstance(value, list):
        found = [renamed(one, text) for one in value]
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
