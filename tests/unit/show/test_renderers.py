"""Everything that commands print as tables, with long names that look like markup, at any width."""

from __future__ import annotations

import io
import random
import re
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console, Group

from edgefl.analysis.history import Evaluated, Reached, Target, Waste
from edgefl.analysis.published import Beside, Figure, Order
from edgefl.analysis.summary import Accuracy
from edgefl.core.corners import Interval
from edgefl.core.devices import Bounds
from edgefl.core.plan import Assumption
from edgefl.planning.learning import DataAccess
from edgefl.planning.profile import ProfileOptions
from edgefl.planning.profile import profile as profile_run
from edgefl.runs import drafts
from edgefl.runs.dry import dry_run
from edgefl.show import calibration, onnx
from edgefl.show import profile as costs
from edgefl.show.check import dry_runs
from edgefl.show.compare import comparison
from edgefl.show.published import tables
from edgefl.show.table import Table

# Names in the records below that are users' words; each is replaced by a generated name.
WORDS = [
    "raspberry-pi-4b", "raspberry-pi-zero-2w", "phone-mid", "pixel-6", "wifi-pi4", "mlp", "fedavg",
    "quickstart", "train", "body", "head", "Home.onnx", "layer", "cat", "Resnet", "title", "why",
    "source", "text",
]  # fmt: skip

NONE = Waste(0, 0.0, 0.0)


@cache
def profiles():
    """Two runs' costs on devices with and without prices, layer by layer."""
    options = ProfileOptions(("raspberry-pi-4b", "phone-mid", "raspberry-pi-zero-2w", "pixel-6"), layers=True)
    runs = drafts("quickstart", ["sweep={runs: [{name: fedavg, seed: 1}, {name: head, seed: 2}]}"])
    return [profile_run(draft, options, DataAccess(need="nothing")) for draft in runs]


@cache
def dry():
    """A dry run."""
    return dry_run("quickstart", ["sweep=null", "server.policy=overselect"])[0]


def runs(number):
    """Runs with accuracies, targets, waste and settings of their own."""
    found = dry().summary
    below = Evaluated(1.0, 2, 500, 2_500_000, found.energy, 0.85, NONE)
    took = Reached(2.0, 3, 1000, 5_000_000, found.energy, 0.9, NONE, below)
    return [
        replace(
            found,
            name=f"quickstart, head {place}",
            seed=place,
            run_dir=f"title/{place}",
            accuracy={
                "global": Accuracy(0.9, 0.8, 3, None, None, None),
                "personal": Accuracy(0.9, 0.8, 3, 0.1, 18, 2),
            },
            target=Target(0.9, took, None),
            status=("done", "failed", "running")[place % 3],
            reason="why",
            settings={"seed": place, "method.text": f"source {place}"},
        )
        for place in range(number)
    ]


PARITY = onnx.Parity(359, 1e-7, True, 1e-4, 1e-5, 1.0, 0.5, 0.5, passed=True)
COMPACT = onnx.Compact(359, 0.5, 0.51, 0.99, 2000, 1.0, 2.0, calibrated_on=512, drop=0.01)
EXPORT = onnx.Exported(Path("out/Home.onnx"), Path("card.md"), None, 1000, PARITY, 0.5, standing="why")
MEASURED = onnx.MeasuredCalls("source", 1, 0.1, 0.1, 0.1, 0.1, 10.0, 1000, 0.5, 10, 100, stopped_early=True)
PRICE = onnx.Price("fp32", "layer", "assumed", 0.1, Bounds(0.1, 0.0, 0.0), 10.0, 1.0)
BENCH = onnx.BenchResult(
    "Home.onnx", "", 1000, 1, True, "fp32", 10, 1, 10, onnx.Memory(1, 1), [MEASURED], "why",
    [onnx.OperatorTime("layer", "Resnet", 0.1, 0.00001)],
    [
        onnx.Predicted("phone-mid", "phone", "", PRICE, 10, 0.1, True),
        onnx.Predicted("pixel-6", "phone", "device 'pixel-6' has no text", None, 10, 0.1, None),
    ],
)  # fmt: skip
BESIDE = Beside(
    "A paper", "a note",
    [Figure("fedavg", "accuracy", "share", 0.4, 0, "fedavg", 0.00001, Interval(-0.1, 0.1), -0.4)],
    [Order("accuracy", 3, 1, 1, ["a > b"])],
)  # fmt: skip
RENDERERS = {
    "comparison": lambda change: comparison([change(run) for run in runs(3)]),
    "comparison of many": lambda change: comparison([change(run) for run in runs(6)]),
    "dry runs": lambda change: dry_runs([change(dry())]),
    "profile": lambda change: costs.profile(change(profiles()[0])),
    "device rounds": lambda change: costs.device_rounds([change(one) for one in profiles()]),
    "published": lambda change: Group(*(part for some in tables([change(BESIDE)]) for part in some)),
    "exports": lambda change: onnx.exports(
        [change(EXPORT), change(replace(EXPORT, compact=COMPACT, client=1))]
    ),
    "bench": lambda change: onnx.bench(change(BENCH)),
    "inference": lambda change: onnx.inference(
        change(
            onnx.Inference(
                "Home.onnx",
                (1, 8, 8),
                [onnx.ImageClasses("title", "text", [onnx.ClassProbability("cat", 0.00001)] * 3)],
            )
        )
    ),
    "calibration": lambda change: calibration.calibration(
        [change(calibration.Prediction("Resnet", "fit", 0.1, 0.00001, 0.12))],
        [],
        [change(calibration.MethodPrediction("Resnet", "fedprox", 0.2, 0.3, 0.1, 0.1))],
    ),
    "named": lambda change: Table(
        change(("layer", "why")), [change(("cat", "text"))], change("title"), names=2
    ),
}


def changed(value, names, *, keys=True):
    """A record, mapping or sequence with words replaced by names, however deep."""
    if isinstance(value, Assumption):
        return Assumption(*(changed(one, names) for one in value.__getnewargs__()))
    if isinstance(value, (str, Path)):
        pattern = r"(?<![\w-])(" + "|".join(map(re.escape, names)) + r")(?![\w-])"
        return type(value)(re.sub(pattern, lambda found: names[found[0]], str(value)))
    if is_dataclass(value):
        values = {one.name: changed(getattr(value, one.name), names) for one in fields(value) if one.init}
        return replace(value, **values)
    if isinstance(value, dict) or hasattr(value, "items"):
        return {changed(key, names) if keys else key: changed(inner, names) for key, inner in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(changed(inner, names) for inner in value)
    return (
        type(value)(changed(inner, names) for inner in value) if isinstance(value, (list, tuple)) else value
    )


def printed(table, width):
    """What is printed by a console that would read markup and emoji."""
    console = Console(file=io.StringIO(), width=width, markup=True, emoji=True)
    console.print(table)
    return console.file.getvalue()


def long_names(seed):
    """Parts of a name for each word; the last part is the word's own."""
    draw = random.Random(seed)  # noqa: S311 - a test's
    parts = (
        ["".join(draw.choices("ab[]:±", k=draw.randint(1, 14))) for _ in range(draw.randint(1, 4))]
        for _ in WORDS
    )
    return {word: [*part, f"q{place}q"] for place, (word, part) in enumerate(zip(WORDS, parts, strict=True))}


@pytest.mark.parametrize("renderer", RENDERERS)
@settings(max_examples=4)
@given(st.integers(0, 2**32), st.integers(60, 200))
def test_names_are_whole_at_any_width(renderer, seed, width):
    """Of each name that is shown by a wide terminal, every part is shown whole by a narrow one."""
    parts = long_names(seed)
    names = {word: "-".join(part) for word, part in parts.items()}
    table = RENDERERS[renderer](lambda value, **how: changed(value, names, **how))
    wide, text = printed(table, 10_000), printed(table, width)
    assert max(map(len, text.splitlines())) <= width
    shown = [word for word, name in names.items() if name in wide]
    assert shown
    assert [part for word in shown for part in parts[word] if part not in text] == []


SOURCES = sorted((Path(__file__).parents[3] / "edgefl").rglob("*.py"))


def test_markup_has_no_way_in():
    """Rich's tables are built in one place, but for grids, of texts; consoles say that texts are none."""
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert "from_markup" not in text, path
        assert "rich.panel" not in text, path
        assert path.name == "table.py" or "rich.rule" not in text, path
        if path.name != "table.py" and "rich.table" in text:
            assert not re.search(r"\bTable\(", text), path
            assert not re.search(r"add_row\((?!Text\()", text), path
        for call in re.findall(r"(?<!\w)Console\((.+)\)", text):
            assert "markup=False" in call, path


def _printed(block):
    console = Console(file=io.StringIO(), width=80)
    console.print(block)
    return console.file.getvalue()


def test_an_overview_begins_with_bytes_and_memory():
    """What a client receives, sends and holds in a round of each run: the same as the exchanges' own."""
    shown = _printed(costs.device_rounds(profiles()))
    lines = shown.splitlines()
    assert lines[0].startswith("bytes of a client's round")
    assert [line.split("│")[0].strip() for line in lines[2:5]] == ["down", "up", "peak memory, in fp32"]
    assert [line.split("│")[1].strip() for line in lines[2:5]] == ["19.2 kB", "19.2 kB", "46.8 kB"]


def test_the_networks_of_devices_are_named():
    """The commonest first, then those of single devices."""
    options = ProfileOptions(("raspberry-pi-4b", "raspberry-pi-5", "stm32f746"))
    (draft,) = drafts("quickstart", ["sweep=null"])
    found = profile_run(draft, options, DataAccess(need="nothing"))
    assert costs.networks(found.prices) == "wifi-pi4; wifi-pi5 (raspberry-pi-5)"


def test_memory_that_is_many_times_too_small_is_a_multiple():
    """Not 293649.9%."""
    first = profiles()[0].prices[0]
    for share, text in ((9.99, "999.0%"), (2936.4, "2,936x")):
        row = {**first, "memory_share": share, "fits": False}
        shown = _printed(costs.profile(replace(profiles()[0], prices=[row])))
        assert text in shown
