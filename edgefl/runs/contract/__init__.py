"""Checks the contract of methods on digits with four clients.

The method runs through the same planning, clock and learner as any run; nothing is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch

from edgefl.core.errors import UserError
from edgefl.core.overrides import Override
from edgefl.core.user_code import is_users
from edgefl.runs.contract import learning, merging, repeats, work
from edgefl.runs.contract.findings import Broken, Inapplicable, finding, raised
from edgefl.runs.contract.findings import Finding as Finding
from edgefl.runs.contract.setting import Setting, differences, identical

Check: TypeAlias = Callable[[Setting], Broken | Inapplicable | None]

_PLANNED = "functions return what they should, on tensors without data"


def check_method(method: Mapping[str, Any], overrides: Sequence[str | Override] = ()) -> list[Finding]:
    """Checks a method's promises.

    Args:
        method: its name and parameters, as in a scenario.
        overrides: settings that replace those of the scenario in which it is checked, such as
            "method.base=fedprox" or "model=cnn2".

    Raises:
        UserError: the name, a parameter or a setting is wrong.
    """
    setting = Setting.of(method, overrides)
    try:
        setting.planned  # noqa: B018 - a cached property, which is made here
    except UserError as error:
        if not is_users(error.where.rpartition(":")[0]):
            raise
        return [raised(_PLANNED, error)]
    found = [finding(promise, partial(check, setting)) for promise, check in _CHECKS.items()]
    return [Finding(_PLANNED, True, ""), *found]


def _predicts(setting: Setting) -> Broken | None:
    learner, method = setting.learned(), setting.built
    models = (("global", method.global_model), ("personal", method.personal_model))
    scores = learner.evaluate(max(learner.context.versions))
    for (name, function), score in zip(models, scores, strict=True):
        if score and function and not torch.isfinite(torch.as_tensor(score.loss)).all():
            return Broken(f"the {name} model's logits are not finite", (function,))
    return None


def _neutral(setting: Setting) -> Broken | Inapplicable | None:
    neutral = setting.built.neutral
    if neutral is None:
        return Inapplicable("the method has no neutral parameters")
    name = setting.planned.plan.scenario.method.name
    pair = (setting.of_other({"name": name, **neutral}), setting.of_other({"name": "fedavg"}))
    method, fedavg = (repeats.last_version(each.learned()) for each in pair)
    if differences(method, fedavg, identical):
        return Broken(f"differs from FedAvg at {dict(neutral) or 'its defaults'}", (setting.build,))
    return None


_CHECKS: Mapping[str, Check] = {
    "traced bytes match real payloads and uploads": work.traced_bytes,
    "functions leave their arguments unchanged": work.unmodified,
    "work depends on shapes alone, not on labels or pixels": learning.shapes_alone,
    "states keep their keys and shapes": work.states,
    "exchanges say whether they write client states": work.stateful,
    "training is at the temperature, prediction at 1": learning.temperature,
    "merging does not depend on the order of arrivals": merging.order,
    "merging divides by the sum of the arrivals' weights": merging.weights,
    "equal seeds give equal bits": repeats.repeatable,
    "nothing is kept between calls": repeats.forgetful,
    "training together equals training alone": repeats.together,
    "models predict finite logits": _predicts,
    "equals FedAvg bit for bit at neutral parameters": _neutral,
}
