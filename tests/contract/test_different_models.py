"""Models of different width in one federation, for the methods that allow it."""

from dataclasses import replace

import pytest
from builders import build_method, build_net, learned
from nightly import sampled
from small import SMALL

import edgefl
from edgefl.core.errors import ScenarioError
from edgefl.core.yamls import Document
from edgefl.planning.learning import check_fit
from edgefl.protocol import Net

# On digits, of 8x8 pixels: two convolutional nets and a fully connected one, all of 12 features.
ALIKE = [
    {"name": "cnn2", "channels": [2, 3], "hidden": 12, "padding": "same"},
    {"name": "cnn2", "channels": [3, 5], "hidden": 12, "padding": "same"},
    {"name": "mlp", "hidden": [20, 12]},
]
# Likewise, of 12, 16 and 20 features.
UNLIKE = [
    ALIKE[0],
    {"name": "cnn2", "channels": [3, 5], "hidden": 16, "padding": "same"},
    {"name": "mlp", "hidden": [20]},
]
# What travels in a round, in numbers of four bytes, with 10 classes and 40 public images.
HEAD, PROTOTYPES, SHARES = 12 * 10 + 10, 12 * 10 + 10, 40 * 10


def scenario(method, models):
    """Six clients, two of each model, who do two rounds."""
    return {
        **SMALL,
        "seed": 3,
        "task": {"dataset": "digits", "clients": 6, "public": {"samples": 40}},
        "model": models,
        "method": method,
        "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9}},
        "server": {"rounds": 2},
    }


@sampled(
    1,
    ("method", "models", "up"),
    [
        ("ktpfl", UNLIKE, SHARES),
        ("local", UNLIKE, 0),
        ({"name": "fedproto", "predict": "head", "strength": 0.01}, ALIKE, PROTOTYPES),
        ("fedclassavg", ALIKE, HEAD),
    ],
)
def test_models_of_different_width_train_together(tmp_path, method, models, up):
    """Every client sends as much, learns, and has a state of its own model's shapes."""
    (run,) = edgefl.run(scenario(method, models), engine="loop", out=tmp_path / "run").runs
    assert run.status == "done", run.reason
    sent = [row for row in run.table("payloads") if row["exchange"] == "train" and row["direction"] == "up"]
    by_model = [sum(one["bytes"] for one in sent if one["model"] == row["model"]) for row in sent]
    assert set(by_model) == ({4 * up} if up else set())
    names = {"cnn2 #1", "cnn2 #2", "mlp"}
    assert {row["model"] for row in run.table("clients")} == names
    losses = [row["loss"] for row in run.table("evaluations") if row["model"] == "personal"]
    assert losses[-1] < losses[0]
    assert len({leaf.shape for key, leaf in learned(run).items() if key.endswith("body/conv1.weight")}) == 2


@pytest.mark.parametrize(
    ("method", "models", "words"),
    [
        ("fedavg", ALIKE, r"clients receive 'body', .* model 1 \(cnn2\) and model 2 \(cnn2\)"),
        ("fedclassavg", UNLIKE, r"clients receive 'head', .* model 1 \(cnn2\) and model 2 \(cnn2\)"),
        ({"name": "ktpfl", "share_weights": True}, ALIKE, r"clients receive 'body'"),
    ],
)
def test_what_travels_needs_one_shape(tmp_path, method, models, words):
    """The message names the part, and the first two models between which it differs."""
    with pytest.raises(ScenarioError, match=words) as caught:
        edgefl.run(scenario(method, models), out=tmp_path / "run")
    assert "ktpfl" in caught.value.hint
    assert not (tmp_path / "run").exists()


def test_uploads_need_one_shape_too():
    """A method that sends nothing down but the body up is refused as well: the server merges one shape."""
    nets = tuple(build_net("mlp", (1, 8, 8), hidden=hidden) for hidden in ((12,), (16,)))

    def sending(net: Net):
        (train,) = build_method("local", net).exchanges
        work = replace(train.work, finish=lambda carry, _: ({"all of it": carry["weights"]["body"]}, None))
        return replace(build_method("local", net), exchanges=(replace(train, work=work),))

    methods = [sending(net) for net in nets]
    with pytest.raises(
        ScenarioError, match=r"clients send 'all of it', .* model 1 \(mlp\) and model 2 \(mlp\)"
    ):
        check_fit(methods, nets, "sending", Document("s.yaml", {}))
    check_fit(methods[:1] * 2, nets[:1] * 2, "sending", Document("s.yaml", {}))
