"""A browser for the session, small runs, and their page."""

import os
from contextlib import ExitStack

import pytest
from visits import browser, missing, visiting

import edgefl
from edgefl.show.page.build import page
from edgefl.show.page.html import html


@pytest.fixture(scope="session")
def opened():
    """A browser; skips where there is none, and fails where the environment says that there must be one."""
    why = missing()
    if why and not os.environ.get("EDGEFL_BROWSER"):
        pytest.skip(why)
    assert not why
    with browser() as one:
        yield one


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Runs of four policies, two seeds each, that were trained for three rounds."""
    root = tmp_path_factory.mktemp("runs")
    for seed in (7, 8):
        settings = {"seed": seed, "server.rounds": 3}
        edgefl.run("deadline", overrides=settings, out=root / str(seed), progress=False)
    return [root / "7", root / "8"]


@pytest.fixture(scope="session")
def record(folders):
    """Their page as a record."""
    return page(folders, 0.5)


@pytest.fixture(scope="session")
def saved(opened, record, tmp_path_factory):
    """(page's record): the address of the file that it is written into."""
    path = tmp_path_factory.mktemp("page") / "page.html"

    def save(one=record):
        path.write_text(html(one), encoding="utf-8")
        return path.as_uri()

    # To compile Plotly takes two seconds, but for a page of the same address while one is open.
    opened.contexts[0].new_page().goto(save())
    return save


@pytest.fixture(scope="module")
def shared(opened, saved):
    """A visit to the page with all plots drawn, for tests that set what they need."""
    with visiting(opened, saved()) as made:
        made.ready()
        made.draw_all()
        yield made
        assert made.complaints == []


@pytest.fixture
def visit(opened, saved):
    """(record, settings): a visit to its page, which at the end had no error and asked for nothing else."""
    visits = []
    with ExitStack() as stack:

        def start(one=None, *, ready=True, **settings):
            address = saved() if one is None else saved(one)
            made = stack.enter_context(visiting(opened, address, **settings))
            visits.append((made, address))
            if ready:
                made.ready()
            return made

        yield start
        for made, address in visits:
            assert made.complaints == []
            # What the page makes itself - data:, blob: - leaves the machine as little as its own file does.
            assert {url for url in made.requests if not url.startswith(("data:", "blob:"))} == {address}
