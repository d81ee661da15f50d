"""The settings in which runs differ, as far as they tell something."""

from edgefl.analysis.settings import differing

PROX = {"method.name": "fedprox", "method.mu": 0.1, "method.base.name": "fedavg"}
MOON = {"method.name": "moon", "method.mu": 1.0, "method.base.name": "fedavg"}


def test_parameters_of_one_name_belong_to_their_component():
    """What runs of one method differ in is told; that two methods have a parameter of one name is not."""
    runs = [{"method.name": "fedavg"}, PROX, MOON, {**MOON, "method.base.name": "fedprox"}]
    found = differing(runs)
    assert found["method.base.name"] == [None, "fedavg", "fedavg", "fedprox"]
    assert "method.mu" not in found
    assert differing([*runs[:3], {**MOON, "method.mu": 5.0}])["method.mu"] == [None, 0.1, 1.0, 5.0]
