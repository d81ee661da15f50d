"""Checks the contract of methods on digits with four clients.

The method runs through the same planning, clock and learner as any run; nothing is saved.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from edgefl.core.errors import UserError
from edgefl.core.overrides import Override
from edgefl.core.user_code import is_users
from edgefl.runs.contract import learning, merging, repeats, work
from edgefl.runs.contract.findings import Broken, Inapplicable, finding, raised
from edgefl.runs.contract.findings import Finding as Finding
from edgefl.runs.contract.setting import Setting, differences, identical, last_version

Check: TypeAlias = Callable[[Setting], Broken | Inapplicable | None]

_PLANNED = "functions return what they should, on tensors without data"


def check_method(method: Mapping[str, Any], overrides: Sequence[str | Override] = ()) -> list[Finding]:
    """Checks a method's promises.

    Args:
        method: its name and parameters, as in a scenario.
        overrides: settings that replace those of the scenario in which it is checked, such as
            "method.base=fedprox" or "model=cnn2".

    Returns:
        A finding for each promise, up to the first broken one of those without which the others mean little.

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
    found = [Finding(_PLANNED, True, "")]
    for promise, check in CHECKS.items():
        found.append(finding(promise, partial(check, setting)))
        # What is seen of the others means little then.
        if promise in FIRST and not found[-1].kept:
            break
    return found


def _neutral(setting: Setting) -> Broken | Inapplicable | None:
    method = setting.planned.plan.scenario.method
    neutral = method.neutral
    if neutral is None:
        return Inapplicable("the method has no neutral parameters")
    pair = (setting.of_other({"name": method.name, **neutral}), setting.of_other({"name": "fedavg"}))
    own, fedavg = (last_version(each.ended()) for each in pair)
    if differences(own, fedavg, identical):
        return Broken(f"differs from FedAvg at {dict(neutral) or 'its defaults'}", (setting.build,))
    return None


FIRST: Mapping[str, Check] = {
    "functions run on data": repeats.runs,
    "nothing is kept between calls": repeats.forgetful,
    "equal seeds give equal bits": repeats.repeatable,
    "traced bytes match real payloads and uploads": work.traced_bytes,
}
CHECKS: Mapping[str, Check] = {
    **FIRST,
    "functions leave their arguments unchanged": work.unmodified,
    "work depends on shapes alone, not on labels or pixels": learning.shapes_alone,
    "states keep their keys and shapes": work.states,
    "exchanges say whether they write client states": work.stateful,
    "training minimises the net's whole objective": learning.objective,
    "merging does not depend on the order of arrivals": merging.order,
    "merging divides by the sum of the arrivals' weights": merging.weights,
    "what other methods keep at the server is passed on": merging.passed_on,
    "training together equals training alone": repeats.together,
    "models predict finite logits, at temperature 1": learning.predictions,
    "equals FedAvg bit for bit at neutral parameters": _neutral,
}
