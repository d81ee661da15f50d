"""What one sees of the plots: pages of four kinds of runs, wide or on a phone, and planted faults."""

import pytest
from nightly import sampled
from seen import blank, faults, scrolled, used
from visits import DESKTOP, PHONE

import edgefl
from edgefl.show.page.build import page

# A scenario and what is changed in it. One run of phones has batteries and measures.
PAGES = {
    "one run": (
        "deadline",
        {
            "server.rounds": 4,
            "evaluate.models": ["global", "personal"],
            "evaluate.measures": ["class-accuracy", "personal-accuracy", "logit-entropy"],
            "fleet": "city-phones",
            "sweep": None,
        },
    ),
    "asynchronous": ("async", {"server.until.bytes": "300 kB"}),
    "all is lost": (
        "deadline",
        {"server.rounds": 3, "fleet": {"like": "home-lab-heavy-tail", "failures": {"crash": 1.0}}},
    ),
}


@pytest.fixture(scope="session")
def shown(record, tmp_path_factory):
    """(name): a page's record; that of eight runs is the others' of this folder."""
    records = {"eight runs": record}

    def show(name):
        if name not in records:
            scenario, changed = PAGES[name]
            out = tmp_path_factory.mktemp("seen") / "run"
            edgefl.run(scenario, overrides=changed, out=out, progress=False)
            records[name] = page([out])
        return records[name]

    return show


@pytest.fixture
def look(visit, shown):
    """(name, width): a visit to a page whose plots a reader has scrolled by."""

    def open_(name, width=DESKTOP):
        seen = visit(shown(name), width=width, still=True)
        scrolled(seen)
        return seen

    return open_


@sampled(1, "name", ["asynchronous", "all is lost"])
def test_plots_show_what_they_are_of(look, name):
    """Every picture has its marks inside its axes, at the numbers that their hovers tell."""
    wide = look(name)
    assert faults(wide) == []
    assert blank(wide) == []


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "width"), [("eight runs", DESKTOP), ("one run", PHONE)])
def test_whatever_is_chosen_is_shown(look, name, width):
    """So it is whichever switch is used, or a plot says why there is nothing."""
    seen = look(name, width)
    assert faults(seen) == []
    assert blank(seen) == []
    plots, wrong = used(seen)
    assert wrong == []
    assert plots >= {"accuracy", "costs", "durations", "round", "memory", "devices", "participation"}


# What is done to a plot, and what is said of it then.
PLANTED = {
    "a range of shares on an axis of percent": (
        "accuracy",
        "one => Plotly.relayout(one, {'yaxis.autorangeoptions': {clipmin: -0.01, clipmax: 1.01}})",
        "leaves the axes",
    ),
    "shares where the axis has percent": (
        "accuracy",
        "one => Plotly.restyle(one, {y: one.data.map(({ y }) => y.map((share) => share / 100))})",
        "is not what its hover tells",
    ),
    "a title with another unit": (
        "costs",
        "one => Plotly.relayout(one, {'xaxis.title.text': 'bytes of all clients (GB)'})",
        "is not what its hover tells",
    ),
    "an empty trace": ("durations", "one => Plotly.restyle(one, {x: [[]], y: [[]]}, [0])", "has no values"),
    "a line without ink": ("active", "one => Plotly.restyle(one, {opacity: 0})", "is not painted"),
    "a map without its last column": (
        "partition",
        "one => Plotly.relayout(one, {'xaxis.range': [-0.5, 8.5]})",
        "leaves its axis x",
    ),
    "names that do not fit": (
        "memory",
        "one => Plotly.relayout(one, {'yaxis.automargin': false, 'margin.l': 20})",
        "leaves the picture",
    ),
    "numbers upon each other": (
        "accuracy",
        """one => Plotly.relayout(one, {'xaxis.tickmode': 'linear', 'xaxis.tickangle': 0,
                                        'xaxis.dtick': one._fullLayout.xaxis.dtick / 20})""",
        "overlap",
    ),
}


@pytest.mark.nightly
def test_planted_faults_are_seen(look):
    """Each is seen in the plot that has it, and in no other; so is a plot that lacks but its colours."""
    seen = look("one run")
    for name, (plot, act, words) in PLANTED.items():
        canvas = seen.page.locator(f"#plot-{plot} .canvas")
        canvas.evaluate(act)
        told = faults(seen)
        assert any(words in fault for fault in told), (name, told)
        assert {fault.split(":")[0] for fault in told} == {plot}, (name, told)
        # Plotly keeps what it was told; the plot begins anew.
        canvas.evaluate("one => Plotly.purge(one)")
        seen.draw_all()
        assert faults(seen) == []
    seen.page.add_style_tag(content="#plot-accuracy .scatterlayer { visibility: hidden }")
    assert blank(seen) == ["accuracy"]
