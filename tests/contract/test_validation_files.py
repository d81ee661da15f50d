"""The shipped files of measurements: sources, what was fitted to them, and how many boards they cover."""

from __future__ import annotations

import re

import pytest

from edgefl.core import catalogue
from edgefl.core.catalogue import shipped
from edgefl.core.sourced import sourced
from edgefl.planning.benchmarks import KIND, read
from edgefl.planning.validation import validation

FILES = sorted(path.stem for path in shipped(KIND).glob("*.yaml"))

# A repository at a commit, and what was read there.
SOURCE = re.compile(r"([\w.-]+/[\w.-]+)@[0-9a-f]{7,40} \S+")
# What else these repositories hold, so that a number from there was not fitted to the measured networks.
ELSEWHERE = {
    # Products, copies and launches of kernels, not networks.
    "branes-ai/graphs": "hardware_registry/",
    # The idle phone.
    "UbiquitousLearning/Benchmark-On-Device-Training": "in the first 10 samples",
}
# Numbers that no time or energy of a single step depends on.
UNUSED = re.compile(r"memory|reserved_memory|(battery|throttling).*")


@pytest.fixture(scope="module", params=FILES)
def file(request):
    """A shipped file, its board and its places."""
    return read(request.param)


def repository(text):
    """The repository that a source names, without its commit."""
    return SOURCE.match(text)[1]


def test_there_are_files():
    """Of several boards and kinds of measurement."""
    files = [read(name).benchmark for name in FILES]
    assert len({one.board for one in files}) >= 8
    assert {one.measures for one in files} == {
        *("training step", "last-layer step", "forward pass", "inference"),
    }


def test_every_figure_has_a_source(file):
    """Each file, and each row that has another source, names repository, commit and place."""
    benchmark = file.benchmark
    for text in (benchmark.source, *(row.source for row in benchmark.rows)):
        assert SOURCE.match(text), text


def test_a_file_says_what_was_measured(file):
    """Its title, its runtime and how it differs from what is predicted, in words; every row once."""
    benchmark = file.benchmark
    assert len(benchmark.notes.split()) >= 8
    rows = [(repr(row.measured), row.batch) for row in benchmark.rows]
    assert len(set(rows)) == len(rows)


def test_fitted_numbers_say_so_in_the_boards_file(file):
    """A number that was fitted to a row names the row's repository as its source."""
    numbers = dict(sourced(file.board))
    for row in file.benchmark.rows:
        for name in row.fitted:
            assert repository(row.source) in numbers[name].source, name


def test_what_a_board_was_fitted_to_is_marked(file):
    """No number of the board comes from a row that counts as if it did not.

    A number that predictions of the file depend on, and whose source is the file's repository, is among those
    that rows on this board from there say were fitted to them.
    """
    benchmark = file.benchmark
    theirs = repository(benchmark.source)
    others = [read(name).benchmark for name in FILES]
    marked = {
        number
        for one in others
        if one.board == benchmark.board and repository(one.source) == theirs
        for row in one.rows
        for number in row.fitted
    }
    of_other_types = [f".{other}" for other in ("fp16", "bf16", "int8") if other != benchmark.dtype]
    for name, number in sourced(file.board):
        if UNUSED.fullmatch(name) or any(other in name for other in of_other_types):
            continue
        if theirs in number.source and ELSEWHERE.get(theirs, "no other") not in number.source:
            assert name in marked, f"{name} of {benchmark.board}: {number.source}"


@pytest.fixture(scope="module")
def found():
    """All files held against their boards; by day docs/validation.md has their figures."""
    return validation(FILES)


@pytest.mark.nightly
def test_every_row_has_a_prediction(found):
    """On every board every measured time has one, whether it counts or not."""
    times = [one for one in found.comparisons if one.quantity == "time"]
    assert {one.name for one in times} == set(FILES)
    assert all(row.predicted > 0 for one in times for row in one.rows)


@pytest.mark.nightly
def test_boards_and_networks_that_nothing_was_fitted_to(found):
    """At least four boards have at least three networks each whose times count."""
    networks = {}
    for one in found.comparisons:
        if one.quantity == "time":
            networks.setdefault(one.board, set()).update(row.network for row in one.rows if row.counted)
    assert sum(len(names) >= 3 for names in networks.values()) >= 4


@pytest.mark.nightly
def test_rows_that_were_fitted_count_only_where_they_were_left_out_of_the_fit(found):
    """A row that counts has no number fitted to it but those that were fitted again without its network."""
    by_name = {name: read(name).benchmark for name in FILES}
    for one in found.comparisons:
        benchmark = by_name[one.name]
        for row in one.rows:
            (given,) = (
                each
                for each in benchmark.rows
                if (each.label or each.network, each.batch) == (row.network, row.batch)
            )
            if given.fitted_for(one.quantity) and row.counted:
                assert row.remark == "refitted"


def test_the_catalogue_shows_them():
    """Each has a description in `edgefl list validation`."""
    assert set(FILES) <= catalogue.entries(KIND).keys()
    assert all(catalogue.summary(catalogue.find(KIND, name)) for name in FILES)
