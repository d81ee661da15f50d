"""Scenarios: overrides, sweeps, scales and names."""

from operator import attrgetter

import pytest

from edgefl.core.drafts import load
from edgefl.core.errors import ScenarioError
from edgefl.core.notes import note, passed_to
from edgefl.core.scenario import LocalTraining
from edgefl.core.yamls import Document

LOCAL = "local: {optimizer: {name: sgd, lr: 0.01}}\n"
BASE = f"""\
name: base
task: {{dataset: digits, clients: 4, partition: {{name: dirichlet}}}}
model: mlp
method: {{name: fedprox, mu: 0.1}}
{LOCAL}fleet: home-lab
"""


def _load(text="", *overrides, base=BASE):
    return load(Document.parse(base + text, "s.yaml"), overrides)


def _one(text="", *overrides, base=BASE):
    (draft,) = _load(text, *overrides, base=base)
    return draft.scenario


def _fails(text="", *overrides):
    with pytest.raises(ScenarioError) as caught:
        _load(text, *overrides)
    return caught.value


def test_defaults():
    """One local epoch of batches of 32, synchronous rounds with all clients; the file's name."""
    (draft,) = load(Document.parse(BASE.removeprefix("name: base\n"), "folder/own.yaml"))
    one = draft.scenario
    assert (one.local.passes.epochs, one.local.batch_size, one.server.until.rounds) == (1, 32, 10)
    assert (one.server.policy.name, one.server.participants) == ("sync", None)
    assert one.name == draft.group == "own"


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        # A component keeps its parameters unless it becomes another one, or is given as a whole.
        ("method.mu=0.5", "method.mu", 0.5),
        ("method.name=local", "method.name", "local"),
        ("method.name=fedprox", "method.mu", 0.1),
        ("method=fedprox", "method.mu", 0.01),
        ("model.hidden=[8, 8]", "model.hidden", (8, 8)),
        ("local.optimizer.name=Sgd", "local.optimizer.lr", 0.01),
        ("local.optimizer={name: adam, lr: 1}", "local.optimizer.betas", (0.9, 0.999)),
        ("name=2024", "name", "2024"),
        ("wire.up=int8", "wire.up.name", "int8"),
        ("engine.workers=2", "engine.workers", 2),
        # ``rounds`` is short for a limit of its own, beside others.
        ("server={rounds: 3, until: {time: 2 min}}", "server.until.time", 120),
        ("server={until: {bytes: 5 MB, accuracy: 0.9}}", "server.until.rounds", None),
        # One key of a named fleet keeps the rest.
        ("fleet.jitter={name: fixed}", "fleet.members", _one("", "fleet={like: home-lab}").fleet.members),
    ],
)
def test_overrides(override, key, value):
    """KEY=VALUE reaches every depth, and leaves the document as it was."""
    document = Document.parse(BASE, "s.yaml")
    (draft,) = load(document, [override])
    assert attrgetter(key)(draft.scenario) == value
    assert load(document)[0].scenario == _one()


def test_optimizers_and_their_rates():
    """The name alone, then the rate; the default is SGD with its own rate, also below an empty ``local``."""
    adam = _one("", "local.optimizer=adam", "local.optimizer.lr=0.3").local.optimizer
    assert (adam.name, adam.lr) == ("adam", 0.3)
    bare = BASE.replace(LOCAL, "local:\n")
    assert _one("", "local.optimizer=SGD", base=bare).local == LocalTraining()
    assert _one("", "local.optimizer.lr=0.5", base=bare).local.optimizer.lr == 0.5
    error = _fails("", "local.optimizer=adam")
    where = "--set local.optimizer=adam, key 'local.optimizer.lr'"
    assert (error.what, error.where) == ("'lr' is missing", where)


def test_an_item_of_a_list_is_set_by_its_place():
    """Counted from 0; places that are not there are refused."""
    models = _one("", "model=[mlp, {name: cnn2}]", "model.0.hidden=[8]").models
    assert (models[0].hidden, models[1].name) == ((8,), "cnn2")
    for key in ("model.hidden", "model.2.hidden", "model.-1.hidden", "model.\u00b2.hidden"):
        error = _fails("", "model=[mlp, cnn2]", f"{key}=[8]")
        assert (error.what, error.where) == (f"{key!r}: 'model' is a list", f"--set {key}=[8]")
        assert error.hint == "give a place from 0 to 1"


@pytest.mark.parametrize(
    ("override", "what", "where"),
    [
        ("seed", "is not KEY=VALUE", "--set"),
        ("server={rounds: 1, participants: 0}", "greater", "--set server={...}, key 'server.participants'"),
        ("sweep={server.rounds: [1, 0]}", "", "--set sweep={server.rounds: [1, 0]}, key 'server.rounds'"),
        ("notes=" + "[x" * 40, "not valid YAML", "--set notes=" + "[x" * 25 + "[..."),
        ("server={rounds: 3, until: {rounds: 4}}", "give rounds", "--set"),
        ("server={until: {accuracy: 0.9}}", "give rounds", "--set"),
    ],
)
def test_a_wrong_override_is_placed_on_the_command_line(override, what, where):
    """With all that was typed, cut if it is long, and the key if it is another one."""
    error = _fails("seed: 1\n", override)
    assert what in error.what
    assert error.where.startswith(where.replace("{...}", "{rounds: 1, participants: 0}"))


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ("server: {rounds: 0}\n", "greater", "s.yaml:7, key 'server.rounds'"),
        ("sweep:\n  seed: [1]\n  local.optimizer.lr: [0.1, -1]\n", "", "s.yaml:9, key 'local.optimizer.lr'"),
        ("sweep: [1, 2]\n", "sweep should be a mapping", "s.yaml:7, key 'sweep"),
        ("sweep: {seed: []}\n", "sweep.seed should have at least 1 item", "s.yaml:7, key 'sweep"),
        ("sweep: {runs: [seed]}\n", "sweep.runs.0 should be a mapping", "s.yaml:7, key 'sweep"),
        (
            f"sweep: {{seed: [1, 2], notes: [{'x, ' * 5001}]}}\n",
            "the most is 10,000",
            "s.yaml:7, key 'sweep'",
        ),
    ],
)
def test_a_mistake_in_the_file_has_its_line_under_overrides(text, what, where):
    error = _fails(text, "local.epochs=1")
    assert what in error.what
    assert error.where.startswith(where)


@pytest.mark.parametrize(
    ("sweep", "overrides", "runs"),
    [
        # The product of the axes, of which the last varies fastest, and of pairs.
        ("{seed: [1, 2], local.epochs: [3, 4]}", [], [(1, 3), (1, 4), (2, 3), (2, 4)]),
        ("{runs: [{seed: 1, local.epochs: 3}, {seed: 2}]}", [], [(1, 3), (2, 1)]),
        ("{runs: [{seed: 1}, {seed: 2}], local.epochs: [3, 4]}", [], [(1, 3), (1, 4), (2, 3), (2, 4)]),
        # What contains a setting is set before it.
        ("{local.epochs: [3, 4], local: [{batch_size: 8}]}", [], [(0, 3), (0, 4)]),
        ("{seed: [1, 2], local.epochs: [3, 4]}", ["seed=9"], [(9, 3), (9, 4)]),
        ("{local: [{epochs: 3}, {epochs: 4, batch_size: 8}]}", ["local.epochs=5"], [(0, 5), (0, 5)]),
        ("{local: [{epochs: 3}, {epochs: 4}]}", ["local.epochs=5"], [(0, 5)]),
        ("{runs: [{seed: 1, local.epochs: 3}, {seed: 1}, {seed: 2}]}", ["seed=9"], [(9, 3), (9, 1)]),
        ("{seed: [1, 2]}", ["sweep.local.epochs=[6, 7]", "seed=4"], [(4, 6), (4, 7)]),
        ("{seed: [1, 2]}", ["sweep.seed=null"], [(0, 1)]),
        ("{seed: [1, 2]}", ["sweep=null", "seed=9"], [(9, 1)]),
        ("{runs: [{seed: 1}, {seed: 2}]}", ["sweep.runs.1.seed=5"], [(1, 1), (5, 1)]),
    ],
)
def test_sweeps(sweep, overrides, runs):
    """What is set has this value in every run; ``sweep.KEY`` is an axis, ``sweep.runs.N.KEY`` a setting."""
    drafts = _load(f"sweep: {sweep}\n", *overrides)
    assert [(one.scenario.seed, one.scenario.local.passes.epochs) for one in drafts] == runs
    assert {draft.group for draft in drafts} == {"base"}
    assert len({draft.scenario.name for draft in drafts}) == len(runs)


NAMED = {
    "{seed: [1], local.optimizer.lr: [0.1]}": ["seed 1, lr 0.1"],
    "{runs: [{name: x, seed: 1}, {name: x, seed: 2}, {seed: 3}]}": ["x", "x (2)", "seed 3"],
    "{method: [{name: scaffold, base: {name: fedprox, mu: 1}}]}": ["scaffold base fedprox mu 1"],
    "{model: [[{name: mlp, hidden: [8, 4]}, mlp]], task.pooled: [null]}": [
        "[mlp hidden [8, 4], mlp], pooled null"
    ],
    "{server.policy: [{name: deadline, quantile: 0.8, allow_partial: true}]}": [
        "deadline quantile 0.8 allow_partial true"
    ],
}


@pytest.mark.parametrize("sweep", NAMED)
def test_runs_are_named_by_what_differs(sweep):
    assert [draft.scenario.name for draft in _load(f"sweep: {sweep}\n")] == NAMED[sweep]


@pytest.mark.parametrize(
    ("sweep", "override", "runs", "told"),
    [
        ("{method: [fedprox, fedavg]}", "method=moon", ["base"], "method"),
        (
            "{runs: [{name: a, server.policy: sync, seed: 1}, {name: b, seed: 2}]}",
            "server.policy=fedasync",
            ["seed 1", "b"],
            "server.policy",
        ),
        ("{fleet: [homes]}", "fleet.link=3g", ["like homes link 3g"], ""),
        ("{method: [{name: moon, mu: 2}]}", "method.mu=5", ["moon mu 5"], "method.mu"),
    ],
)
def test_an_override_replaces_what_the_sweep_sets(sweep, override, runs, told):
    said: list[str] = []
    note.cache_clear()
    with passed_to(said.append):
        drafts = _load(f"sweep: {sweep}\n", override)
    assert [draft.scenario.name for draft in drafts] == runs
    assert said == ([f"--set {override} replaces the sweep's {told}"] if told else [])


def test_what_the_result_depends_on():
    """Engine, names and notes are not part of a run's identity; the seed is."""
    plain = _one().resolved()
    assert plain == _one("engine: {name: 'null'}\nnotes: x\n", "name=other").resolved()
    assert plain != _one("", "seed=1").resolved()


SCALED = """\
server: {rounds: 100, participants: 2}
sweep: {method: [fedavg, fedprox, moon], seed: [0, 1]}
scales:
  small: {server.rounds: 2, task: {dataset: digits, clients: 2}, sweep.method: [fedavg, moon], seed: 0}
  7: {server.rounds: 7}
"""


def test_a_scale_replaces_settings_and_reaches_into_the_sweep():
    """Others are lost with the key; what is set besides wins, in whatever order; without one, none counts."""
    whole, small = _load(SCALED), _load(SCALED, "server.rounds=3", "scale=small")
    assert [len(whole), len(small)] == [6, 2]
    assert {(one.scenario.scale, one.scenario.server.until.rounds) for one in whole} == {("", 100)}
    for settings in (one.scenario for one in small):
        rounds, clients = settings.server.until.rounds, settings.task.clients
        assert (settings.scale, rounds, clients, settings.server.participants) == ("small", 3, 2, 2)
        assert "scale" not in settings.resolved()
    assert [one.scenario.method.name for one in small] == ["fedavg", "moon"]
    assert _load(SCALED + "scale: 7\n")[0].scenario.server.until.rounds == 7


@pytest.mark.parametrize(
    ("text", "override", "what", "hint"),
    [
        (SCALED, "scale=large", "the scenario has no scale 'large'", "it has small, 7"),
        ("", "scale=small", "the scenario has no scale 'small'", "it has none; for example scales: {small:"),
        ("scales: {small: 3}\n", "seed=1", "scales.small should be a mapping of keys to values; got 3", ""),
        ("scales: {a: {server: {round: 2}}}\n", "scale=a", "unknown key 'round'", "did you mean 'rounds'?"),
    ],
)
def test_a_wrong_scale_is_refused(text, override, what, hint):
    error = _fails(text, override)
    assert error.what == what
    assert hint in error.hint
