"""``edgefl plot`` and ``Result.plot``: a figure of runs, or one message."""

import resource
import sys

import pytest
from commands import run_command

import edgefl

pytest.importorskip("matplotlib", reason="Matplotlib, which the extra plot brings, is not installed")

FEW = [
    "sweep=null",
    "evaluate.models=[global]",
    "task.clients=4",
    "server={rounds: 2, participants: 2}",
    "local.epochs=1",
    "costs={traffic: 1 EUR/GB}",
]


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    out = tmp_path_factory.mktemp("plot") / "runs"
    return edgefl.run("quickstart", overrides=[*FEW, "sweep.seed=[1, 2]"], out=out)


@pytest.mark.nightly
def test_python_has_the_same_figure(result, tmp_path, capsys):
    from matplotlib.figure import Figure

    run_command(capsys, "plot", result.folder, "--out", tmp_path / "a.pdf", "--x", "joules", "--y", "loss")
    result.plot("joules", "loss").savefig(tmp_path / "b.pdf")
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    mine = Figure().add_subplot()
    assert result.runs[0].plot(ax=mine) is mine.figure
    assert len(mine.lines) == 1


def test_what_a_target_cost_is_drawn(result):
    """Time, bytes, energy and money side by side, as `compare` has them."""
    made = result.plot("time,bytes,joules,money", "target", columns=2, target=[0.1, 0.999])
    assert [text.get_text() for text in made.axes[1].texts] == ["99.9% not reached"]
    summaries = [run.summary(0.1) for run in result.runs]
    reached = [one.target.global_ for one in summaries]
    for axes, key in zip(made.axes, ("t_s", "bytes"), strict=False):
        (mean,) = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
        scale = {"ms": 1e3, "s": 1, "kB": 1e-3, "MB": 1e-6}[axes.get_xlabel().rpartition("(")[2].rstrip(")")]
        assert mean == pytest.approx(scale * sum(getattr(one, key) for one in reached) / 2)
    paid = [one.costs["money"].to_target["global"]["total"].amount for one in summaries]
    (mean,) = [line.get_xdata()[0] for line in made.axes[3].lines if line.get_marker() == "o"]
    assert mean == pytest.approx(sum(paid) / 2)
    with pytest.raises(edgefl.UserError, match="ax has room for one x"):
        result.plot("time,bytes", ax=made.axes[0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--x", "epoch"], "did you mean 'epochs'?"),
        (["--y", "target", "--target", "0.999"], "no run has a known time to 99.9%"),
        (["--out", "fig.jpg"], "fig.jpg must end in .pdf or .svg or .png"),
    ],
)
def test_bad_input_is_one_message(result, arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    out = [] if "--out" in arguments else ["--out", "fig.pdf"]
    status, printed, err = run_command(capsys, "plot", result.folder, *out, *arguments)
    assert (status, printed) == (2, "")
    assert err.startswith("error: ")
    assert words in " ".join(err.split())
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_extra_is_named(result, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, _, err = run_command(capsys, "plot", "no-such-run", "--out", tmp_path / "fig.pdf")
    assert status == 2
    assert "pip install 'edgefl-emulator[plot]'" in err
    with pytest.raises(edgefl.UserError, match="figures need matplotlib"):
        result.plot()


def test_a_file_that_cannot_be_written_whole_is_one_message(result, tmp_path, capsys):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        status, _, err = run_command(capsys, "plot", result.folder, "--out", tmp_path / "fig.png")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (status, "cannot write fig.png: File too large" in err) == (1, True)
    assert list(tmp_path.iterdir()) == []
