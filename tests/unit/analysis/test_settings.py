"""The settings in which runs differ, as far as they tell something."""

import pytest

from edgefl.analysis.settings import differing

BASE = {"local.epochs": 1, "method.name": "fedavg", "fleet": "home-lab"}
PROX = {"method.name": "fedprox", "method.mu": 0.1, "method.base.name": "fedavg"}
MOON = {"method.name": "moon", "method.mu": 1.0, "method.base.name": "fedavg"}
INLINE = {
    "fleet.title": "A lab",
    "fleet.notes": "x",
    "fleet.members": [1],
    "fleet.link": "4g",
    "fleet.a.name": "b",
}


@pytest.mark.parametrize(
    ("without", "changes", "found"),
    [
        (["local.epochs"], {"local.steps": 5}, {"local.epochs": [1, None], "local.steps": [None, 5]}),
        (
            [],
            {"task.samples.name": "lognormal", "task.samples.mu": 4},
            {"task.samples.name": [None, "lognormal"], "task.samples.mu": [None, 4]},
        ),
        # Parameters of another component, which the first run lacks.
        (
            [],
            {"method.name": "flexchill", "method.temperature": 4.0},
            {"method.name": ["fedavg", "flexchill"]},
        ),
        ([], {"fleet.links.bus.title": "x", "fleet.link": "4g"}, {"fleet.link": [None, "4g"]}),
        (["fleet"], INLINE, {"fleet": ["home-lab", "A lab"], "fleet.link": [None, "4g"]}),
    ],
)
def test_what_differs_is_told(without, changes, found):
    other = {key: BASE[key] for key in BASE if key not in without} | changes
    assert differing([BASE, other]) == found


def test_parameters_of_one_name_belong_to_their_component():
    """What runs of one method differ in is told; that two methods have a parameter of one name is not."""
    runs = [{"method.name": "fedavg"}, PROX, MOON, {**MOON, "method.base.name": "fedprox"}]
    found = differing(runs)
    assert found["method.base.name"] == [None, "fedavg", "fedavg", "fedprox"]
    assert "method.mu" not in found
    assert differing([*runs[:3], {**MOON, "method.mu": 5.0}])["method.mu"] == [None, 0.1, 1.0, 5.0]
