"""The page as HTML: one file, small, whose text is text and whose data are those of the record."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import edgefl
from edgefl.analysis.groups import Judged
from edgefl.analysis.metrics import Metric
from edgefl.analysis.values import Value
from edgefl.show.page.build import page
from edgefl.show.page.html import drawn, html
from edgefl.show.page.sections import figures, verdict
from edgefl.show.values import cell

_VOID = {"meta", "link", "br", "img", "input"}


class Parsed(HTMLParser):
    """A page's elements and text.

    Attributes:
        elements: (name, attributes) in order.
        text: of all elements but script and style, in one line.
        scripts: what stands in each script element.
        unclosed: elements that do not end.
    """

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


@pytest.fixture(scope="module")
def parsed(record):
    """Its HTML, parsed."""
    return Parsed(html(record))


def test_it_is_well_formed(parsed):
    """Each element is closed where it was opened, and no id is there twice."""
    assert parsed.unclosed == []
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_it_refers_to_nothing_outside(parsed):
    """No element has an address but places in the page."""
    for _, attributes in parsed.elements:
        for key in ("src", "href", "action", "srcset", "data"):
            assert attributes.get(key, "#").startswith(("#", "data:,"))


def test_the_policy_names_the_scripts_that_run(parsed):
    """The page's own script and Plotly's, unpacked, have the hashes in the policy; there are no others."""
    (policy,) = [found["content"] for _, found in parsed.elements if "http-equiv" in found]
    _, plotly, script = parsed.scripts
    running = [script.encode(), gzip.decompress(base64.b64decode(plotly))]
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(one).digest()).decode()}'" for one in running]
    parts = dict(part.split(" ", 1) for part in policy.split("; "))
    assert sorted(parts["script-src"].split()) == sorted(hashes)
    assert (parts["default-src"], parts["connect-src"]) == ("'none'", "'none'")


def test_the_data_are_the_record(parsed, record):
    """Unpacked, the data are what scripts read of the page's record."""
    packed = json.loads(gzip.decompress(base64.b64decode(parsed.scripts[0])))
    assert packed == {"page": json.loads(json.dumps(drawn(record)))}


def test_plotly_keeps_its_licence(record):
    """The notice of Plotly's licence can be read in the page."""
    assert re.search(r"<!--\s*/\*\*.*plotly\.js.*Copyright.*MIT license.*?\*/\s*-->", html(record), re.DOTALL)


def test_it_is_small(tmp_path):
    """Ten runs of 200 rounds are at most 3.2 MB: Plotly once, and the data of each."""
    settings = {"server.rounds": 200, "sweep": None}
    edgefl.run("quickstart", overrides=settings, engine="null", out=tmp_path / "run")
    text = html(page([tmp_path / "run"]))
    data_of_one = len(Parsed(text).scripts[0])
    assert data_of_one > 10_000
    assert len(text) + 9 * data_of_one <= 3.2e6


def test_every_figure_is_in_the_text(parsed, record):
    """Of each row of the comparison, the label and each group's text."""
    for row in record.told.figures:
        for text in (row.metric.label, *(cell(value, row.metric.unit) for value in row.values)):
            assert " ".join(text.replace(" (", "(").split()) in parsed.text.replace(" (", "(")


@pytest.mark.parametrize("groups", [3, 5])
def test_a_part_is_told_from_its_whole(record, groups):
    """In a row below it, or with its name in a column's heading."""
    rows = [("CO2e", Value(1.0)), ("  server", Value(0.5)), ("host time", None)]
    judged = [Judged(Metric(label, label, "g", "", str), [value] * groups) for label, value in rows]
    many = replace(record.told, figures=judged, groups=[record.told.groups[0]] * groups)
    text = html(replace(record, sections=[figures.section(many, [])]))
    told = '<th scope="row" class="part"><bdi>server</bdi>' if groups == 3 else "<bdi>CO2e: server</bdi>"
    assert told in text
    assert "<bdi>host time</bdi>" in text
    assert "- stands where a run has no such figure." in text


def test_signs_are_explained(record, parsed):
    """What stands below a comparison in a terminal stands below all figures."""
    assert "to a target: until the first evaluation at or above it" in record.told.signs
    assert all(words in parsed.text for words in record.told.signs)


def run_of(record, **summed):
    """What is known of the page's runs, as if the first one had ended so."""
    first, *others = record.told.runs
    first = replace(first, summary=replace(first.summary, **summed))
    return replace(record.told, runs=[first, *others])


def test_words_for_what_is_not_there_yet(record):
    """A run that is not finished has no number of rounds; one that a key stopped has no class's name."""
    told = run_of(record, rounds=None, status="interrupted", reason="KeyboardInterrupt")
    text = Parsed(html(replace(record, sections=[verdict.section(told, []), figures.runs(told, [])]))).text
    assert "not finished" in text
    assert "KeyboardInterrupt" not in text


def test_a_section_without_data_says_why(parsed):
    """Nothing was trained: the sections about learning have words."""
    assert "No run has evaluated a model yet." in parsed.text
    assert "The scenarios ask for no measures." not in parsed.text


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("failed", "failed: it diverged"),
        ("interrupted", "was interrupted: these are its figures so far"),
        ("running", "is still running: these are its figures so far"),
        ("killed", "was killed: these are its figures so far"),
    ],
)
def test_what_became_of_a_run_is_said_first(record, status, words):
    """Above the verdict stands which run is not done, and why."""
    told = run_of(record, status=status, reason="it diverged")
    text = Parsed(html(replace(record, sections=[verdict.section(told, [])]))).text
    assert f"{told.groups[0].name} {words}" in text
    assert text.index(words) < text.index("Verdict: each figure")
