"""The shipped files of measurements: sources, what was fitted to them, and how many boards they cover."""

import re

import pytest

from edgefl.core.catalogue import shipped
from edgefl.core.sourced import sourced
from edgefl.planning.benchmarks import KIND, read

FILES = sorted(path.stem for path in shipped(KIND).glob("*.yaml"))

# A repository at a commit, and what was read there.
SOURCE = re.compile(r"([\w.-]+/[\w.-]+)@[0-9a-f]{7,40} \S+")


@pytest.fixture(scope="module", params=FILES)
def file(request):
    return read(request.param)


def repository(text):
    return SOURCE.match(text)[1]


def test_every_figure_has_a_source(file):
    """Each file, and each row that has another source, names repository, commit and place."""
    benchmark = file.benchmark
    for text in (benchmark.source, *(row.source for row in benchmark.rows)):
        assert SOURCE.match(text), text


def test_a_file_says_what_was_measured(file):
    """Its title, its runtime and how it differs from what is predicted, in words; every row once."""
    benchmark = file.benchmark
    assert len(benchmark.notes.split()) >= 8
    rows = [(row.key, row.batch) for row in benchmark.rows]
    assert len(set(rows)) == len(rows)


def test_fitted_numbers_say_so_in_the_boards_file(file):
    """A number that was fitted to a row names the row's repository as its source."""
    numbers = dict(sourced(file.board))
    for row in file.benchmark.rows:
        for name in row.fitted:
            assert repository(row.source) in numbers[name].source, name
