"""The display of running scenarios: where it is shown, and beside a user's own callbacks."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import edgefl
from edgefl.runs import Callbacks, progress
from edgefl.runs.progress import Display

SCENARIO = {
    # Brackets are no markup.
    "name": "[/] rev [b]",
    "task": {"dataset": "digits", "clients": 4, "partition": "iid"},
    "model": {"name": "mlp", "hidden": [8]},
    "method": "fedavg",
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.1}},
    "fleet": "home-lab",
    "server": {"participants": 2, "rounds": 2},
}


class Seen(Callbacks):
    """Notes which calls were made."""

    def __init__(self):
        self.calls = []
        for name in ("started", "merged", "ended"):
            setattr(self, name, lambda *_, name=name: self.calls.append(name))


CALLS = ["started", "merged", "merged", "ended"]


@pytest.fixture
def printed(monkeypatch):
    """(how standard error is made): what is printed there."""

    def console(**kind):
        file = io.StringIO()
        monkeypatch.setattr(progress, "Console", lambda **given: Console(**{**given, "file": file, **kind}))
        return file

    return console


def test_a_terminal_shows_progress_and_nothing_else_does(tmp_path, printed):
    """Names are shown as they are."""
    terminal = printed(force_terminal=True, width=100)
    edgefl.run(SCENARIO, engine="null", out=tmp_path / "1")
    assert "[/] rev [b]" in terminal.getvalue()
    assert "2/2" in terminal.getvalue()
    pipe = printed(force_terminal=False)
    edgefl.run(SCENARIO, engine="null", out=tmp_path / "2")
    assert pipe.getvalue() == ""


def test_progress_can_be_asked_for_and_turned_off(tmp_path, printed):
    """Plain lines in a pipe; nothing in a terminal."""
    pipe = printed(force_terminal=False)
    edgefl.run(SCENARIO, engine="null", out=tmp_path / "1", progress=True)
    assert "\n[/] rev [b]: clock " in pipe.getvalue()
    terminal = printed(force_terminal=True)
    edgefl.run(SCENARIO, engine="null", out=tmp_path / "2", progress=False)
    assert terminal.getvalue() == ""


def test_callbacks_take_the_place_of_progress_or_go_beside_it(tmp_path, printed):
    """A user's callbacks are called in any case."""
    terminal, seen = printed(force_terminal=True), Seen()
    edgefl.run(SCENARIO, engine="null", out=tmp_path / "1", callbacks=seen)
    assert (terminal.getvalue(), seen.calls) == ("", CALLS)
    both = Seen()
    edgefl.run(SCENARIO, engine="null", out=tmp_path / "2", callbacks=both, progress=True)
    assert both.calls == CALLS
    assert "[/] rev [b]" in terminal.getvalue()


def test_a_notebook_without_widgets_gets_plain_lines(monkeypatch):
    """Redrawing needs ipywidgets; without them rich would warn at each run."""
    notebook = Console(force_jupyter=True, file=io.StringIO())
    monkeypatch.setattr(progress, "find_spec", lambda _: None)
    assert Display(notebook).disable
    monkeypatch.setattr(progress, "find_spec", lambda _: object())
    assert not Display(notebook).disable


def test_what_trains_is_printed_when_it_changes():
    """Three runs, two engines."""
    file = io.StringIO()
    display = Display(Console(file=file, force_terminal=False, markup=False))
    for line in ("engine: loop (as asked), 1 process",) * 2 + ("engine: [b] (as asked), 2 processes",):
        display.engine(line)
    assert file.getvalue().splitlines() == [
        "engine: loop (as asked), 1 process",
        "engine: [b] (as asked), 2 processes",
    ]


@pytest.mark.parametrize(("callbacks", "hint"), [(Seen, "pass an object, not its class"), (print, "")])
def test_what_is_no_object_of_callbacks_is_refused(callbacks, hint, tmp_path):
    """Before anything is planned."""
    with pytest.raises(edgefl.UserError, match=r"subclass of edgefl\.Callbacks") as caught:
        edgefl.run("quickstart", callbacks=callbacks, out=tmp_path / "runs")
    assert caught.value.hint == hint
    assert not (tmp_path / "runs").exists()
