"""Scenarios: overrides, sweeps and names."""

from __future__ import annotations

import pytest

from edgefl.core.drafts import load, slug
from edgefl.core.errors import ScenarioError
from edgefl.core.notes import note, passed_to
from edgefl.core.overrides import Override
from edgefl.core.training import LocalTraining
from edgefl.core.yamls import Document

BASE = """\
name: base
task: {dataset: digits, clients: 4}
model: mlp
method: {name: fedprox, mu: 0.1}
local: {optimizer: {name: sgd, lr: 0.01}}
fleet: home-lab
"""


def _load(text="", *overrides):
    return load(Document.parse(BASE + text, "s.yaml"), overrides)


def _one(text="", *overrides):
    (draft,) = _load(text, *overrides)
    return draft.scenario


def _fails(text="", *overrides):
    with pytest.raises(ScenarioError) as caught:
        _load(text, *overrides)
    return caught.value


def test_defaults():
    """The defaults: IID, one local epoch of batches of 32, synchronous rounds with all clients."""
    one = _one()
    assert (one.task.partition.name, one.local.passes.epochs, one.local.batch_size) == ("iid", 1, 32)
    assert (one.server.policy.name, one.server.participants, one.name) == ("sync", None, "base")


def test_a_scenario_is_named_after_its_file():
    """Without a name of its own, it takes the file's."""
    (draft,) = load(Document.parse(BASE.removeprefix("name: base\n"), "folder/own.yaml"))
    assert draft.scenario.name == draft.group == "own"


@pytest.mark.parametrize(
    ("override", "read"),
    [
        ("seed=9", lambda one: one.seed == 9),
        ("server.rounds=3", lambda one: one.server.until.rounds == 3),
        ("local.optimizer.lr=1e-3", lambda one: one.local.optimizer.lr == 0.001),
        ("method.mu=0.5", lambda one: one.method.mu == 0.5),
        ("method=local", lambda one: (one.method.name, one.method.params) == ("local", {})),
        ("method.name=local", lambda one: (one.method.name, one.method.params) == ("local", {})),
        ("method.name=fedprox", lambda one: one.method.mu == 0.1),
        ("model.hidden=[8, 8]", lambda one: (one.model.name, one.model.hidden) == ("mlp", (8, 8))),
        ("model=[mlp, {name: cnn2}]", lambda one: [model.name for model in one.models] == ["mlp", "cnn2"]),
        ("task.partition.alpha=1", lambda one: one.task.partition.alpha == 1),
        ("fleet=city-phones", lambda one: one.fleet == "city-phones"),
        ("name=a = b", lambda one: one.name == "a = b"),
        ("name=2024", lambda one: one.name == "2024"),
        ("method=fedprox", lambda one: one.method.mu == 0.01),
        ("method={name: fedprox}", lambda one: one.method.mu == 0.01),
        ("model=mlp", lambda one: one.model.hidden == (64,)),
        ("model={name: mlp}", lambda one: one.model.hidden == (64,)),
        ("local.optimizer=sgd", lambda one: one.local.optimizer.lr == 0.01),
        ("local.optimizer.name=sgd", lambda one: one.local.optimizer.lr == 0.01),
        ("local.optimizer={name: adam, lr: 1}", lambda one: one.local.optimizer.betas == (0.9, 0.999)),
        ("task.partition=iid", lambda one: one.task.partition.params == {}),
        ("wire.up=int8", lambda one: one.wire.up.name == "int8"),
        ("server.policy=fedbuff", lambda one: one.server.policy.name == "fedbuff"),
        ("engine=null", lambda one: one.engine.name == "null"),
        ("engine.workers=2", lambda one: one.engine.workers == 2),
    ],
)
def test_overrides(override, read):
    """KEY=VALUE reaches every depth; a component keeps its parameters unless it becomes another one."""
    text = "task: {dataset: digits, clients: 4, partition: {name: dirichlet}}\n"
    document = Document.parse(BASE.replace("task: {dataset: digits, clients: 4}\n", text), "s.yaml")
    (draft,) = load(document, [override])
    assert read(draft.scenario)


def test_a_learning_rate_needs_no_optimizer_in_the_file():
    """``--set local.optimizer.lr=0.5`` changes the default SGD where the file says nothing of optimizers."""
    document = Document.parse(BASE.replace("local: {optimizer: {name: sgd, lr: 0.01}}\n", ""), "s.yaml")
    (draft,) = load(document, ["local.optimizer.lr=0.5"])
    assert (draft.scenario.local.optimizer.name, draft.scenario.local.optimizer.lr) == ("sgd", 0.5)


def test_a_bare_optimizer_and_its_learning_rate():
    """The name alone, then the rate, as for every component; the default optimizer keeps its default rate."""
    adam = _one("", "local.optimizer=adam", "local.optimizer.lr=0.3").local.optimizer
    assert (adam.name, adam.lr) == ("adam", 0.3)
    document = Document.parse(BASE.replace("local: {optimizer: {name: sgd, lr: 0.01}}\n", ""), "s.yaml")
    for name in ("sgd", "SGD"):
        (draft,) = load(document, [f"local.optimizer={name}"])
        assert draft.scenario.local == LocalTraining()
    assert _one("", "local.optimizer.name=Sgd").local.optimizer.lr == 0.01
    error = _fails("", "local.optimizer=adam")
    assert (error.what, error.where) == (
        "'lr' is missing",
        "--set local.optimizer=adam, key 'local.optimizer.lr'",
    )


def test_an_item_of_a_list_is_set_by_its_place():
    """Counted from 0; places that are not there are refused."""
    models = _one("", "model=[mlp, {name: cnn2}]", "model.0.hidden=[8]").models
    assert (models[0].hidden, models[1].name) == ((8,), "cnn2")
    for key in ("model.hidden", "model.2.hidden", "model.-1.hidden", "model.\u00b2.hidden"):
        error = _fails("", "model=[mlp, cnn2]", f"{key}=[8]")
        assert (error.what, error.where) == (f"{key!r}: 'model' is a list", f"--set {key}=[8]")
        assert error.hint == "give a place from 0 to 1, as in model.0"


def test_an_override_fills_an_empty_mapping():
    """``local:`` with nothing below it is no mapping yet."""
    document = Document.parse(
        BASE.replace("local: {optimizer: {name: sgd, lr: 0.01}}\n", "local:\n"), "s.yaml"
    )
    (draft,) = load(document, ["local.epochs=4"])
    assert draft.scenario.local.epochs == 4


@pytest.mark.parametrize(
    ("override", "where"),
    [
        ("seed=nine", "--set seed=nine"),
        ("server.rounds=0", "--set server.rounds=0"),
        ("server={rounds: 1, participants: 0}", "--set server={...}, key 'server.participants'"),
        ("sweep.server.rounds=[1, 0]", "--set sweep.server.rounds=[1, 0], key 'server.rounds'"),
        ("sweep={server.rounds: [1, 0]}", "--set sweep={server.rounds: [1, 0]}, key 'server.rounds'"),
        ("notes=" + "[x" * 40, "--set notes=" + "[x" * 25 + "[..."),
        (Override.of("server.rounds", 0, "--rounds 0"), "--rounds 0, key 'server.rounds'"),
        ("seed=!!int x", "--set seed=!!int x"),
        ("seed=99999999999999999999", "--set seed=99999999999999999999"),
        ("name=\udcff", "--set name=\udcff"),
    ],
)
def test_a_wrong_value_is_placed_at_its_option(override, where):
    """With all that was typed, cut if it is long, and the key if it is another one."""
    assert _fails("", override).where == where.replace("{...}", "{rounds: 1, participants: 0}")


def test_an_override_of_one_key_of_a_named_fleet_keeps_the_rest():
    """``fleet.jitter`` changes the profile's jitter and nothing else."""
    fleet = _one("", "fleet.jitter={name: fixed}").fleet
    assert fleet.jitter.name == "fixed"
    assert {member.device for member in fleet.members} >= {"raspberry-pi-5", "laptop-cpu"}


def test_overrides_leave_the_document_as_it_was():
    """The same document can be loaded again, with other overrides."""
    document = Document.parse(BASE, "s.yaml")
    load(document, ["seed=5"])
    (draft,) = load(document)
    assert draft.scenario.seed == 0


@pytest.mark.parametrize(
    ("override", "what"),
    [
        ("seed", "is not KEY=VALUE"),
        ("=5", "is not KEY=VALUE"),
        ("seed=[1", "not valid YAML"),
        ("seed.deep=1", "is not a mapping"),
        ("server.round=5", "unknown key 'round'"),
        ("seed=nine", "seed should be a valid integer; got 'nine'"),
    ],
)
def test_a_wrong_override_is_placed_on_the_command_line(override, what):
    """The error is located in --set, not in the file."""
    error = _fails("seed: 1\n", override)
    assert what in error.what
    assert error.where.startswith("--set")


def test_mistakes_in_the_file_keep_their_line_under_overrides():
    """An override of another key does not change the location of an error in the file."""
    error = _fails("server: {rounds: 0}\n", "seed=1")
    assert error.where == "s.yaml:7, key 'server.rounds'"


def test_a_sweep_is_the_product_of_its_axes():
    """The last axis varies fastest, and runs are named by what differs."""
    drafts = _load("sweep:\n  seed: [1, 2]\n  local.optimizer.lr: [0.1, 0.2, 0.3]\n")
    settings = [(draft.scenario.seed, draft.scenario.local.optimizer.lr) for draft in drafts]
    assert settings == [(1, 0.1), (1, 0.2), (1, 0.3), (2, 0.1), (2, 0.2), (2, 0.3)]
    assert drafts[0].scenario.name == "seed 1, lr 0.1"
    assert {draft.group for draft in drafts} == {"base"}


def test_a_sweep_of_pairs():
    """Settings under ``runs`` are paired; an explicit name is the run's."""
    drafts = _load(
        "sweep:\n  runs:\n    - {name: mine, method.name: fedavg}\n"
        "    - {method.name: spherefed, local.optimizer.lr: 2.0}\n"
    )
    first, second = (draft.scenario for draft in drafts)
    assert (first.name, first.method.name, first.method.params) == ("mine", "fedavg", {})
    assert (second.name, second.method.name, second.local.optimizer.lr) == (
        "spherefed, lr 2.0",
        "spherefed",
        2.0,
    )


def test_pairs_and_axes_multiply():
    """Every pair is combined with every setting of the axes, and all names differ."""
    drafts = _load("sweep:\n  runs: [{name: a, method.name: local}, {name: b}]\n  seed: [1, 2]\n")
    found = [(draft.scenario.method.name, draft.scenario.seed) for draft in drafts]
    assert found == [("local", 1), ("local", 2), ("fedprox", 1), ("fedprox", 2)]
    assert len({draft.scenario.name for draft in drafts}) == 4


def test_equal_names_are_told_apart():
    """Runs of the same name are numbered."""
    drafts = _load("sweep: {runs: [{name: x, seed: 1}, {name: x, seed: 2}, {name: x, seed: 3}]}\n")
    assert [draft.scenario.name for draft in drafts] == ["x", "x (2)", "x (3)"]


def test_bases_are_named_without_brackets():
    """A run's name has a component inside another as that is written, and lists of them."""
    drafts = _load(
        "sweep: {method: [{name: scaffold, base: {name: fedprox, mu: 1}}],"
        " model: [[{name: mlp, hidden: [8, 4]}, mlp]]}\n"
    )
    assert [draft.scenario.name for draft in drafts] == [
        "scaffold base fedprox mu 1, [mlp hidden [8, 4], mlp]"
    ]


def test_runs_are_named_in_the_words_of_yaml():
    """A setting without a value is null, and one of two is true or false."""
    policy = "{name: deadline, quantile: 0.8, allow_partial: true}"
    (draft,) = _load(f"sweep: {{server.participants: [null], server.policy: [{policy}]}}\n")
    assert draft.scenario.name == "participants null, deadline quantile 0.8 allow_partial true"


def test_a_sweep_over_whole_components():
    """A component given as a whole, by name or with parameters, replaces the other."""
    drafts = _load("sweep: {method: [local, {name: fedprox, mu: 1}]}\n")
    assert [draft.scenario.method.params.get("mu") for draft in drafts] == [None, 1]


@pytest.mark.parametrize(
    ("sweep", "overrides", "runs"),
    [
        ("{seed: [1, 2]}", ["seed=9"], [(9, 1)]),
        ("{seed: [1, 2], local.epochs: [3, 4]}", ["seed=9"], [(9, 3), (9, 4)]),
        ("{local.epochs: [3, 4]}", ["local={epochs: 5}"], [(0, 5)]),
        ("{local.epochs: [3, 4], seed: [1, 2]}", ["local={epochs: 5}"], [(1, 5), (2, 5)]),
        ("{local: [{epochs: 3}, {epochs: 4, batch_size: 8}]}", ["local.epochs=5"], [(0, 5), (0, 5)]),
        ("{local: [{epochs: 3}, {epochs: 4}]}", ["local.epochs=5"], [(0, 5)]),
        ("{runs: [{name: a, seed: 1}, {name: b, seed: 2}]}", ["seed=9"], [(9, 1)]),
        ("{runs: [{seed: 1, local.epochs: 3}, {seed: 1}, {seed: 2}]}", ["seed=9"], [(9, 3), (9, 1)]),
        ("{seed: [1, 2]}", ["sweep.seed=[3]"], [(3, 1)]),
        ("{seed: [1, 2]}", ["sweep.local.epochs=[6, 7]", "seed=4"], [(4, 6), (4, 7)]),
        ("{seed: [1, 2]}", ["sweep.seed=null"], [(0, 1)]),
        ("{runs: [{seed: 1}, {seed: 2}]}", ["sweep.runs.1.seed=5"], [(1, 1), (5, 1)]),
        ("{runs: [{seed: 1}, {seed: 2}]}", ["sweep.runs.1.local.epochs=5"], [(1, 1), (2, 5)]),
        ("{runs: [{seed: 1}], local.epochs: [3]}", ["sweep.runs=null", "seed=7"], [(7, 3)]),
        ("null", ["sweep.local.epochs=[2, 4]"], [(0, 2), (0, 4)]),
    ],
)
def test_overrides_change_a_sweep(sweep, overrides, runs):
    """What is set has this value in every run; ``sweep.KEY`` is an axis, ``sweep.runs.N.KEY`` a setting."""
    drafts = _load(f"sweep: {sweep}\n", *overrides)
    assert [(draft.scenario.seed, draft.scenario.local.passes.epochs) for draft in drafts] == runs


@pytest.mark.parametrize(
    ("sweep", "override", "runs", "told"),
    [
        (
            "{fleet: [home-lab, city-phones]}",
            "fleet=homes",
            ["base"],
            "fleet: home-lab, city-phones (2 values)",
        ),
        ("{fleet.link: [3g]}", "fleet=homes", ["base"], "fleet.link: 3g (1 value)"),
        (
            "{method: [{name: fedprox, mu: 1}, {name: fedprox, mu: 2}, fedavg]}",
            "method={name: fedprox, mu: 3}",
            ["base"],
            "method: fedprox mu 1, fedprox mu 2, fedavg (3 values)",
        ),
        (
            "{runs: [{name: a, server.policy: sync, seed: 1}, {name: b, seed: 2}, {name: c, seed: 3}]}",
            "server.policy=fedasync",
            ["seed 1", "b", "c"],
            "server.policy: sync (1 value)",
        ),
        (
            "{fleet: [homes, city-phones]}",
            "fleet.link=3g",
            ["like homes link 3g", "like city-phones link 3g"],
            "",
        ),
        (
            "{method: [{name: fedprox, mu: 1}, {name: moon, mu: 2}]}",
            "method.mu=5",
            ["fedprox mu 5", "moon mu 5"],
            "method.mu: 1, 2 (2 values)",
        ),
    ],
)
def test_an_override_replaces_what_the_sweep_sets(sweep, override, runs, told):
    """A note says what was there; the names say what is run."""
    said: list[str] = []
    note.cache_clear()
    with passed_to(said.append):
        drafts = _load(f"sweep: {sweep}\n", override)
    assert [draft.scenario.name for draft in drafts] == runs
    assert said == ([f"--set {override} replaces the sweep's {told}"] if told else [])


def test_what_contains_a_setting_is_set_before_it():
    """In any order of a sweep's keys no setting is lost."""
    drafts = _load("sweep: {method.mu: [1, 2], runs: [{seed: 3}], method: [fedprox]}\n")
    drafts += _load("sweep: {runs: [{local.optimizer.lr: 0.5, local.optimizer.name: adam, method: local}]}\n")
    assert [draft.scenario.method.params.get("mu") for draft in drafts] == [1, 2, None]
    assert (drafts[-1].scenario.local.optimizer.name, drafts[-1].scenario.local.optimizer.lr) == ("adam", 0.5)


@pytest.mark.parametrize(
    "sweep",
    [
        "{seed: &a [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], b: *a, c: *a, d: *a}",
        "{seed: [1, 2], notes: [" + ", ".join(["x"] * 5001) + "]}",
    ],
)
def test_a_sweep_of_too_many_runs_is_refused(sweep):
    """Before any is made."""
    error = _fails(f"sweep: {sweep}\n")
    assert "the most is 10,000" in error.what
    assert error.where == "s.yaml:7, key 'sweep'"


def test_a_sweep_of_too_many_values_is_refused():
    """Many runs of a long scenario."""
    long = "model: {name: mlp, hidden: [" + ", ".join(["1"] * 9000) + "]}\n"
    seeds = ", ".join(map(str, range(2000)))
    document = Document.parse(BASE.replace("model: mlp\n", long) + f"sweep: {{seed: [{seeds}]}}\n", "s.yaml")
    with pytest.raises(ScenarioError, match=r"2,000 runs with 9,0\d\d values each; the most is 10,000,000"):
        load(document)


def test_an_override_can_leave_the_sweep_out():
    """Then the scenario is one run, and its own settings can be set."""
    (draft,) = _load("sweep: {seed: [1, 2]}\n", "sweep=null", "seed=9")
    assert draft.scenario.seed == 9


@pytest.mark.parametrize(
    ("sweep", "what"),
    [
        ("[1, 2]", "a sweep must map keys to lists"),
        ("{}", "a sweep must map keys to lists"),
        ("{seed: 1}", "'seed' is not a list of values"),
        ("{seed: []}", "'seed' is an empty list"),
        ("{runs: {seed: 1}}", "'runs' must be a list of mappings"),
        ("{runs: []}", "'runs' must be a list of mappings"),
        ("{runs: [seed]}", "'runs' must be a list of mappings"),
    ],
)
def test_a_wrong_sweep_is_found_with_its_line(sweep, what):
    """Sweeps of another form are refused, with their location."""
    error = _fails(f"seed: 4\nsweep: {sweep}\n")
    assert what in error.what
    assert error.where.startswith("s.yaml:8, key 'sweep")


def test_a_wrong_value_in_a_sweep_is_placed_there():
    """An error in a value that the sweep set is located in the sweep."""
    error = _fails("sweep:\n  seed: [1]\n  local.optimizer.lr: [0.1, -1]\n")
    assert error.where == "s.yaml:9, key 'local.optimizer.lr'"
    assert "local.optimizer.lr" in error.where


def test_what_the_result_depends_on():
    """Engine, names and notes are not part of a run's identity; the seed is."""
    plain = _one().resolved()
    assert plain == _one("engine: {name: 'null'}\nnotes: x\n", "name=other").resolved()
    assert plain != _one("", "seed=1").resolved()


def test_clients_share_out_several_models():
    """A list of models is kept in its order."""
    assert [model.name for model in _one("", "model=[mlp, cnn2]").models] == ["mlp", "cnn2"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("FedAvg, lr 0.1", "fedavg-lr-0.1"),
        ("x (2)", "x-2"),
        ("alike 10/20", "alike-10-20"),
        ("../..", "run"),
        ("..", "run"),
        ("é", "run"),
        ("", "run"),
    ],
)
def test_slugs_are_safe_folder_names(name, expected):
    """Lower case, hyphens, no path separators, never a parent folder, never empty."""
    assert slug(name) == expected


@pytest.mark.parametrize(
    ("server", "until"),
    [
        ("{}", {"rounds": 10}),
        ("{rounds: 3}", {"rounds": 3}),
        ("{rounds: 3, until: {time: 2 min}}", {"rounds": 3, "time": 120.0}),
        ("{until: {bytes: 5 MB, accuracy: 0.9}}", {"bytes": 5e6, "accuracy": 0.9}),
    ],
)
def test_limits(server, until):
    """``rounds`` is short for a limit of its own, beside others; without any there are ten rounds."""
    (draft,) = load(Document.parse(BASE, "base.yaml"), [f"server={server}"])
    assert draft.scenario.server.until.model_dump(exclude_none=True) == until


def test_limits_are_a_mapping_also_beside_rounds():
    """The message is about what is wrong, not about rounds that are given twice."""
    with pytest.raises(ScenarioError, match=r"server\.until should be a mapping"):
        load(Document.parse(BASE, "base.yaml"), ["server={rounds: 3, until: 5}"])


@pytest.mark.parametrize(
    "server", ["{rounds: 3, until: {rounds: 4}}", "{until: {accuracy: 0.9}}", "{until: {}}"]
)
def test_limits_that_contradict_or_may_never_be_met(server):
    """Rounds twice, and an accuracy alone, are refused at their place."""
    with pytest.raises(ScenarioError, match=r"give rounds(.|\n)*--set"):
        load(Document.parse(BASE, "base.yaml"), [f"server={server}"])


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
    for one in small:
        settings = one.scenario
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
        ("scales: [small]\n", "seed=1", "'scales' must map names to settings", "for example"),
        ("scales: {small: 3}\n", "seed=1", "'scales' must map names to settings", "for example"),
        (SCALED, "sweep.scale=[small]", "a scale cannot be swept", "--set scale=NAME"),
    ],
)
def test_a_wrong_scale_is_refused(text, override, what, hint):
    """With those that there are."""
    error = _fails(text, override)
    assert error.what == what
    assert hint in error.hint


def test_a_wrong_setting_of_a_scale_has_its_line():
    """Where it stands in the file."""
    assert _fails("scales:\n  a:\n    server: {round: 2}\n", "scale=a").where.startswith("s.yaml:9")
