"""Files with one mistake each: whatever the mistake, it is refused with one message that has a place."""

import random
import re
import warnings

import pytest
from nightly import sampled

from edgefl.core import catalogue, inheriting
from edgefl.core.drafts import load
from edgefl.core.errors import UserError
from edgefl.core.fleet import Fleet
from edgefl.core.link import Link
from edgefl.core.notes import note
from edgefl.core.validation import validate
from edgefl.core.yamls import Document
from edgefl.planning.benchmarks import Benchmark
from edgefl.planning.fleets import device_of
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs.engines import engine_options

VALUES = (
    *("x", "''", "null", "true", "[]", "{}", "[[1]]", "{a: 1}", "{name: 5}", "{name: nope}", "~"),
    *("0", "-1", "1.5", "1e9", "1e308", "1e-320", ".nan", ".inf", "9" * 30, "9" * 5000, "1000000000000"),
    *("9223372036854775807", "4294967296", "1 ns", "1e300 h", "-3 s", "5 parsecs", "12 Mbit/s", "2020-13-45"),
    *("!!int x", "!!float x", "!!bool x", "!!python/object/apply:os.abort []", "*a", "&a [*a]", '"\\ud800"'),
    *("'[/]'", "[1, x]", "[" * 60, "{b: &a {c: *a}}", "\t", "@", "%", "fit"),
)
SETTINGS = (
    *("server.policy={name: deadline, seconds: %s}", "server.policy={name: fedbuff, buffer: %s}"),
    *("fleet.jitter={name: lognormal, sigma: %s}", "fleet.slowdown={name: uniform, low: 1, high: %s}"),
    *("task.samples=%s", "task.clients=%s", "task.partition={name: shards, shards_per_client: %s}"),
    *("local.epochs=%s", "local.steps=%s", "local.batch_size=%s", "local.epochs={fit: 1 s, most: %s}"),
    *("model={name: mlp, hidden: [%s]}", "method={name: flexchill, temperature: %s}", "fleet.members=%s"),
    *("fleet.availability={name: intervals, rows: '%s'}", "fleet.availability={name: intervals, file: %s}"),
    *("server=%s", "task=%s", "sweep=%s", "sweep.seed=[%s]", "sweep.runs=%s", "seed=%s", "name=%s"),
    *("server.until={time: %s}", "evaluate.every=%s", "wire.up={name: topk, share: %s}"),
    *("published=%s", "fleet=%s", "engine=%s", "%s=1"),
)
# A missing key at the top of a file has no line; what is too large has none if several settings made it so.
PLACED = re.compile(r"\.yaml:\d+|^--set|^[\w/.-]+\.yaml(, key '\w+')?$")
SCENARIOS = ("quickstart", "async", "deadline", "selection", "temperature-schedule", "tuning/quickstart")


def _mutated(rng, text):
    lines = text.splitlines(keepends=True)
    words = [
        (number, match)
        for number, line in enumerate(lines)
        if not line.lstrip().startswith("#")
        for match in re.finditer(r"[\w.%/-]+", line)
    ]
    number, match = rng.choice(words)
    line = lines[number]
    lines[number] = line[: match.start()] + rng.choice(VALUES) + line[match.end() :]
    return "".join(lines)


def _device(text):
    device_of(Document.parse(text, "device.yaml"))


def _link(text):
    document = Document.parse(text, "link.yaml")
    validate(Link, document.data, document)


def _profile(text):
    read = Document.parse(text, "profile.yaml")
    document = inheriting.inherited("profiles", read)
    validate(Fleet, document.data, document)


def _scenario(text, overrides=(), *, planned=True):
    first = load(Document.parse(text, "scenario.yaml"), overrides)[0]
    engine_options(first)
    if planned:
        plan(first, DataAccess(need="nothing"))


def _measurements(text):
    document = Document.parse(text, "measurements.yaml")
    validate(Benchmark, document.data, document)


READERS = {"devices": _device, "links": _link, "profiles": _profile, "validation": _measurements}


def _refused(read, *args, **more):
    """Whether something is refused; any other exception than bad input is a failure of the test."""
    note.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            read(*args, **more)
        except UserError as error:
            for each in (error, *error.others):
                assert each.what
                assert len(each.what) < 600, each
                assert PLACED.search(each.where), each
            return True
    return False


@sampled(2, "kind", READERS)
def test_a_mistake_in_a_file_has_a_place(kind):
    rng = random.Random(kind)  # noqa: S311
    texts = [entry.path.read_text(encoding="utf-8") for entry in catalogue.entries(kind).values()]
    refused = [_refused(READERS[kind], _mutated(rng, rng.choice(texts))) for _ in range(40)]
    assert 4 < sum(refused) < 40


def test_a_mistake_in_a_scenario_has_a_place():
    """Its line, up to a plan; some mutations are scenarios still."""
    rng = random.Random("scenarios")  # noqa: S311
    known = catalogue.entries("scenarios")
    texts = [known[name].path.read_text(encoding="utf-8") for name in SCENARIOS]
    refused = [
        _refused(_scenario, _mutated(rng, rng.choice(texts)), planned=number % 4 == 0) for number in range(80)
    ]
    assert 50 < sum(refused) < 80


@pytest.mark.nightly
def test_a_wrong_setting_has_a_place():
    rng = random.Random("settings")  # noqa: S311
    text = catalogue.find("scenarios", "quickstart").path.read_text(encoding="utf-8")
    refused = [
        _refused(_scenario, text, ["sweep=null", rng.choice(SETTINGS).replace("%s", rng.choice(VALUES))])
        for _ in range(60)
    ]
    assert 40 < sum(refused) < 60


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ("local.epochs=9223372036854775807", "does not fit into 64 bits"),
        ("model={name: mlp, hidden: [9223372036854775807]}", "the model 'mlp' cannot be built"),
        ("task.clients=9223372036854775807", "100000000"),
        ("fleet.jitter={name: lognormal, sigma: 1000}", "draws of 'jitter' can be infinite"),
    ],
)
def test_numbers_that_are_too_large(setting, what):
    """What no counter, no memory and no clock holds is refused before anything is simulated."""
    text = catalogue.find("scenarios", "quickstart").path.read_text(encoding="utf-8")
    with pytest.raises(UserError) as caught:
        _scenario(text, ["sweep=null", "engine=null", setting])
    assert what in caught.value.what.replace(",", "")
    assert PLACED.search(caught.value.where)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("server.rounds=1000000000", r"takes about \d+ days, for 1e\+09 rounds with 1e\+10 jobs \(assumed: "),
        ("server={until: {time: 100 h}, policy: {name: deadline, seconds: 1 ns}}", "about .*3.6e.14 rounds"),
        ("server.rounds=1000", None),
    ],
)
def test_a_long_clock_is_said(setting, said, caplog):
    text = catalogue.find("scenarios", "quickstart").path.read_text(encoding="utf-8")
    _scenario(text, ["sweep=null", setting])
    found = "\n".join(record.getMessage() for record in caplog.records)
    assert re.search(said, found) if said else not found
