"""Methods like FedAvg with one thing wrong, and what `edgefl check --method` says of each."""

from pathlib import Path
from textwrap import indent
from typing import NamedTuple

# {wrong} is put into ``build``.
HEAD = '''"""FedAvg with a mistake."""
from dataclasses import replace

import numpy as np
import torch
from torch.nn import functional as F

from edgefl.methods import MethodParams
from edgefl.methods import fedavg
from edgefl.protocol import *

KEPT = {}


class Params(MethodParams):
    """None."""

    NEUTRAL = {}

    def build(self, site):
        method = fedavg.Params().build(site)
        (train,) = method.exchanges
        fold, net = train.work, site.net

        def working(**changes):
            return replace(method, exchanges=(replace(train, work=replace(fold, **changes)),))

        def stepping(step, **changes):
            return working(phases=(replace(fold.phases[0], step=step),), **changes)

        def exchanging(**changes):
            return replace(method, exchanges=(replace(train, **changes),))

        def minimising(objective):
            train = local_training(site, objective)
            return averaging(site, train, shared=(*net.trained, BUFFERS))

{wrong}
'''


def written(folder: Path, name: str, wrong: str) -> Path:
    """Writes a method's file below a folder for EDGEFL_PATH."""
    path = folder / "methods" / f"{name}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(HEAD.replace("{wrong}", indent(wrong, "    ")), encoding="utf-8")
    return path


class Mistake(NamedTuple):
    """A mistake."""

    promise: str
    blamed: str
    words: str
    code: str


RUNS = "functions run on data"
BYTES = "traced bytes match real payloads and uploads"
ARGUMENTS = "functions leave their arguments unchanged"
SHAPES = "work depends on shapes alone, not on labels or pixels"
STATES = "states keep their keys and shapes"
STATEFUL = "exchanges say whether they write client states"
OBJECTIVE = "training minimises the net's whole objective"
ORDER = "merging does not depend on the order of arrivals"
WEIGHTS = "merging divides by the sum of the arrivals' weights"
PASSED_ON = "what other methods keep at the server is passed on"
SEEDS = "equal seeds give equal bits"
KEPT = "nothing is kept between calls"
TOGETHER = "training together equals training alone"
PREDICTIONS = "models predict finite logits, at temperature 1"
NEUTRAL = "equals FedAvg bit for bit at neutral parameters"

MISTAKES = {
    "a part of the server's state forgotten": Mistake(
        RUNS,
        "def merge(server, arrivals):",
        "merge returned a server state without 'body'",
        """
    def merge(server, arrivals):
        return {key: tree for key, tree in train.merge(server, arrivals).items() if key != "body"}

    return exchanging(merge=merge)
""",
    ),
    "an upload that was not traced": Mistake(
        BYTES,
        "def finish(",
        "real {'body'",
        """
    def finish(carry, ctx):
        upload, state = fold.finish(carry, ctx)
        if not upload["head"]["bias"].is_meta:
            upload = {**upload, "secret": {"x": torch.zeros(3)}}
        return upload, state

    return working(finish=finish)
""",
    ),
    "a modified payload": Mistake(
        ARGUMENTS,
        "def start(",
        "train's start modifies its payload",
        """
    def start(payload, state, ctx):
        payload["head"]["bias"].mul_(0.5)
        return fold.start(payload, state, ctx)

    return working(start=start)
""",
    ),
    "a modified state": Mistake(
        ARGUMENTS,
        "def start(",
        "train's start modifies its client state",
        """
    method = replace(method, client=lambda initial: {"rounds": torch.zeros(())})

    def start(payload, state, ctx):
        state["rounds"].add_(1)
        return {**fold.start(payload, state, ctx), "rounds": state["rounds"]}

    def finish(carry, ctx):
        return fold.finish(carry, ctx)[0], {"rounds": carry["rounds"]}

    work = replace(fold, start=start, finish=finish)
    return replace(method, exchanges=(replace(train, work=work, stateful=True),))
""",
    ),
    "work that depends on labels": Mistake(
        SHAPES,
        "def step(",
        "train's step does other work on images of",
        """
    def step(carry, batch):
        seen = [] if batch.y.is_meta else batch.y.unique().tolist()
        for label in seen:
            carry = {**carry, "scalars": {**carry["scalars"], "loss": carry["scalars"]["loss"] + label}}
        return fold.phases[0].step(carry, batch)

    return stepping(step)
""",
    ),
    "work that was not traced": Mistake(
        SHAPES,
        "def step(",
        "on tensors without data",
        """
    def step(carry, batch):
        if not batch.x.is_meta:
            net.logits(carry["weights"], batch.x)
        return fold.phases[0].step(carry, batch)

    return stepping(step)
""",
    ),
    "a state that grows": Mistake(
        STATES,
        "def finish(",
        "finish changes 'seen' of the client's state",
        """
    method = replace(method, client=lambda initial: {"seen": torch.zeros(1)})

    def start(payload, state, ctx):
        return {**fold.start(payload, state, ctx), "seen": state["seen"]}

    def finish(carry, ctx):
        return fold.finish(carry, ctx)[0], {"seen": torch.cat([carry["seen"], torch.zeros(1)])}

    work = replace(fold, start=start, finish=finish)
    return replace(method, exchanges=(replace(train, work=work, stateful=True),))
""",
    ),
    "a state in an exchange without": Mistake(
        STATEFUL,
        "def finish(",
        "stateful=False, and its finish returns a",
        """
    method = replace(method, client=lambda initial: {"rounds": torch.zeros(())})

    def finish(carry, ctx):
        return fold.finish(carry, ctx)[0], {"rounds": torch.ones(())}

    return working(finish=finish)
""",
    ),
    "a cross-entropy of its own": Mistake(
        OBJECTIVE,
        "def objective(",
        "train's step forgets",
        """
    def objective(weights, batch, carry):
        features, buffers = net.features(weights, batch.x, True)
        return F.cross_entropy(net.head(weights["head"], features), batch.y), buffers

    return minimising(objective)
""",
    ),
    "the job's temperature forgotten": Mistake(
        OBJECTIVE,
        "def objective(",
        "forgets the job's temperature",
        """
    def objective(weights, batch, carry):
        features, buffers = net.features(weights, batch.x, True)
        logits = net.head(weights["head"], features) / net.temperature
        return net.loss(logits, batch.y), buffers

    return minimising(objective)
""",
    ),
    "terms forgotten": Mistake(
        OBJECTIVE,
        "def objective(",
        "forgets the terms that other methods add",
        """
    def objective(weights, batch, carry):
        features, buffers = net.features(weights, batch.x, True)
        return fit_loss(net, net.head(weights["head"], features), batch.y, carry), buffers

    return minimising(objective)
""",
    ),
    "the first arrival alone": Mistake(
        ORDER,
        "def merge(",
        "into another state if their order changes",
        """
    def merge(server, arrivals):
        return {**server, **arrivals[0].upload}

    return exchanging(merge=merge)
""",
    ),
    "weights that are not divided by their sum": Mistake(
        WEIGHTS,
        "def merge(",
        "if the weights of all arrivals are doubled",
        """
    def merge(server, arrivals):
        mean = train.merge(server, arrivals)
        share = sum(each.weight for each in arrivals) / 1347
        return {**server, **{part: tree_map(lambda leaf: leaf * share, mean[part]) for part in net.trained}}

    return exchanging(merge=merge)
""",
    ),
    "lost keys": Mistake(
        PASSED_ON,
        "def merge(",
        "loses keys of the server's state that it does not know",
        """
    def merge(server, arrivals):
        return weighted_mean([each.upload for each in arrivals], [each.weight for each in arrivals])

    return exchanging(merge=merge)
""",
    ),
    "all keys sent": Mistake(
        PASSED_ON,
        "def down(",
        "sends keys of the server's state that it does not know",
        """
    def down(server, client):
        return server

    return exchanging(down=down)
""",
    ),
    "noise that nobody seeds": Mistake(
        SEEDS,
        "def step(",
        "train's step draws random numbers that do not come",
        """
    def step(carry, batch):
        noise = np.random.default_rng().random()
        return fold.phases[0].step(carry, Batch(batch.x * (1 + 0.1 * noise), batch.y))

    return stepping(step)
""",
    ),
    "noise of NumPy's own generator": Mistake(
        SEEDS,
        "def step(",
        "train's step draws random numbers that do not come",
        """
    def step(carry, batch):
        noise = np.random.random()
        return fold.phases[0].step(carry, Batch(batch.x * (1 + 0.1 * noise), batch.y))

    return stepping(step)
""",
    ),
    "a cache of the module": Mistake(
        KEPT,
        "def start(",
        "than in a new process: KEPT is kept between calls",
        """
    def start(payload, state, ctx):
        first = KEPT.setdefault(ctx.client, tree_map(torch.clone, payload))
        return fold.start({**payload, "head": first["head"]}, state, ctx)

    return working(start=start)
""",
    ),
    "work that knows its company": Mistake(
        TOGETHER,
        "def step(",
        "client 0 has another upload/",
        """
    def step(carry, batch):
        from torch._C import _are_functorch_transforms_active

        scale = 2.0 if _are_functorch_transforms_active() else 1.0
        return fold.phases[0].step({**carry, "lr": carry["lr"] * scale}, batch)

    return stepping(step)
""",
    ),
    "chilled predictions": Mistake(
        PREDICTIONS,
        "def personal(",
        "predicts at the temperature of training",
        """
    def personal(server, state):
        predictor = method.personal_model(server, state)
        return replace(predictor, logits=lambda weights, x: predictor.logits(weights, x) / net.temperature)

    return replace(method, personal_model=personal, global_model=None)
""",
    ),
    "neutral parameters that are not": Mistake(
        NEUTRAL,
        "def build(",
        "differs from FedAvg at its defaults",
        """
    def merge(server, arrivals):
        merged = train.merge(server, arrivals)
        return {**merged, "head": {**merged["head"], "bias": merged["head"]["bias"] * 0.5}}

    return exchanging(merge=merge)
""",
    ),
}
