"""The page as HTML: one file, small, whose text is text and whose data are those of the record."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser

import pytest
from compared import rich
from hypothesis import given, settings
from hypothesis import strategies as st

import edgefl
from edgefl.show.page.build import page
from edgefl.show.page.frames import Frame, Plot
from edgefl.show.page.html import drawn, html
from edgefl.show.page.records import Told
from edgefl.show.values import cell

_VOID = {"meta", "link", "br", "img", "input"}


class Parsed(HTMLParser):
    """A page's elements and their attributes in order, its text, its scripts, and what is open."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self.scripts, self.unclosed = [], "", [], []
        self.feed(text)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag, attrs):
        """Keeps an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.unclosed.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        """Ends the last element, which is of that name."""
        assert self.unclosed.pop() == tag

    def handle_data(self, data):
        """Keeps a text."""
        if self.unclosed and self.unclosed[-1] == "script":
            self.scripts[-1] += data
        elif self.unclosed and self.unclosed[-1] != "style":
            self.text += data


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """The page of three runs that trained nothing."""
    folder = tmp_path_factory.mktemp("runs") / "group"
    edgefl.run("quickstart", overrides={"server.rounds": 1}, engine="null", out=folder)
    return page([folder])


def test_it_is_one_well_formed_file_whose_policy_names_its_scripts(record):
    """Nothing is twice or outside; scripts, Plotly's unpacked one too, have the hashes in the policy."""
    parsed = Parsed(html(record))
    assert parsed.unclosed == []
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in parsed.elements:
        for key in ("src", "href", "action", "srcset", "data"):
            assert attributes.get(key, "#").startswith(("#", "data:,"))
    (policy,) = [found["content"] for _, found in parsed.elements if "http-equiv" in found]
    data, plotly, script = parsed.scripts
    running = [script.encode(), gzip.decompress(base64.b64decode(plotly))]
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(one).digest()).decode()}'" for one in running]
    parts = dict(part.split(" ", 1) for part in policy.split("; "))
    assert sorted(parts["script-src"].split()) == sorted(hashes)
    assert (parts["default-src"], parts["connect-src"]) == ("'none'", "'none'")
    assert re.search(r"<!--\s*/\*\*.*plotly\.js.*Copyright.*MIT license.*?\*/\s*-->", html(record), re.DOTALL)
    packed = json.loads(gzip.decompress(base64.b64decode(data)))
    assert packed == {"page": json.loads(json.dumps(drawn(record)))}


def test_every_figure_and_sign_is_in_the_text(record):
    """As below a comparison in a terminal; and sections about learning have words for that there was none."""
    text = Parsed(html(record)).text
    for row in record.told.figures:
        for told in (row.metric.label, *(cell(value, row.metric.unit) for value in row.values)):
            assert " ".join(told.replace(" (", "(").split()) in text.replace(" (", "(")
    assert "to a target: until the first evaluation at or above it" in record.told.signs
    assert all(words in text for words in record.told.signs)
    assert "No run has evaluated a model yet." in text
    assert "The scenarios ask for no measures." not in text


def test_it_is_small(tmp_path):
    """Ten runs of 200 rounds are at most 3.2 MB: Plotly once, and the data of each."""
    overrides = {"server.rounds": 200, "sweep": None}
    edgefl.run("quickstart", overrides=overrides, engine="null", out=tmp_path / "run")
    text = html(page([tmp_path / "run"]))
    data_of_one = len(Parsed(text).scripts[0])
    assert data_of_one > 10_000
    assert len(text) + 9 * data_of_one <= 3.2e6


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


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A page with something in every section, and its elements with the names of their attributes."""
    found = page([rich(tmp_path_factory.mktemp("texts") / "rich", sweep={"seed": [1, 2]}).folder])
    return found, _elements(html(found))


def _elements(text):
    return [(tag, list(attributes)) for tag, attributes in Parsed(text).elements]


@settings(max_examples=10)
@given(text=st.sampled_from(ODD) | st.text(st.characters(), max_size=40))
def test_texts_are_texts(whole, text):
    """No element or attribute comes from a text, no control character is left; the data have it as it is."""
    odd = renamed(whole[0], text)
    found = html(odd)
    found.encode("utf-8")
    assert _elements(found) == whole[1]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", found)
    packed = re.search(r'id="data">([^<]*)<', found)[1]
    own = json.loads(json.dumps(drawn(odd)))
    assert json.loads(gzip.decompress(base64.b64decode(packed))) == {"page": own}
