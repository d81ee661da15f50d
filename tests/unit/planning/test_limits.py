"""Limits that would never be met, and totals that no counter holds, are told before the run."""

import pytest
from plans import plan, prices
from unfinished import UNPOWERED

import edgefl
from edgefl.core.errors import ScenarioError
from edgefl.planning.plan import check_size

BASE = ["sweep=null", "method=fedavg"]
FLEET = f"fleet={{members: [{{device: {UNPOWERED}, link: 4g}}]}}"


@pytest.mark.usefixtures("unfinished")
@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ([FLEET, "server={until: {energy: 5 J}}"], "energy is known"),
        (["method=local", "evaluate.models=[personal]", "server={until: {bytes: 1 MB}}"], "sends nothing"),
    ],
)
def test_a_limit_that_nothing_adds_to_is_refused(overrides, reason, tmp_path):
    """Unknown energy or no traffic, as the only limit, is an error and not an endless run."""
    with pytest.raises(ScenarioError, match=reason):
        edgefl.run("quickstart", overrides=[*BASE, *overrides], engine="null", out=tmp_path / "run")


def test_totals_that_no_counter_holds_are_refused():
    """2 clients' operations in 2^20 rounds, but not in every fourth; other limits may end the run earlier."""

    def planned(every, **until):
        return plan([prices("train", 2, flops=2**43, every=every)], until={"rounds": 2**20, **until})

    with pytest.raises(ScenarioError, match="the most that can be counted is 9"):
        check_size(planned(1))
    check_size(planned(4))
    check_size(planned(1, energy="1 J"))
