"""What runs cost in money, against their own joules, bytes and seconds."""

import pytest
from compared import cells, dry, every, rich, run_of
from unfinished import UNPOWERED

import edgefl
from edgefl.analysis.bills import Amount
from edgefl.analysis.summary import summaries
from edgefl.core.errors import UserError

PRICES = "costs={energy: 0.36 EUR/kWh, traffic: 0.05 EUR/GB, server: 0.40 EUR/h}"
# What a joule, a byte and a second cost.
JOULE, BYTE, SECOND = 1e-7, 5e-11, 0.4 / 3600


def test_each_part_is_its_price_times_what_was_taken():
    """With the bounds of what was taken; the total is the sum of the parts and of their bounds."""
    run = dry(PRICES, "server.rounds=2")
    bill = run.costs["money"]
    assert (bill.label, bill.unit) == ("cost", "EUR")
    energy, traffic, server, total = (bill.whole[name] for name in ("energy", "traffic", "server", "total"))
    assert energy.amount == pytest.approx(run.energy.joules * JOULE)
    assert energy.between == pytest.approx([one * JOULE for one in run.joules_between])
    assert traffic == Amount(pytest.approx(run.bytes * BYTE), 1, 1)
    assert server.amount == pytest.approx(run.virtual_s * SECOND)
    assert server.between == pytest.approx([one * SECOND for one in run.virtual_s_between])
    assert total.amount == pytest.approx(energy.amount + traffic.amount + server.amount)
    low, high = (energy.between[end] + server.between[end] + traffic.amount for end in (0, 1))
    assert total.between == pytest.approx((low, high))
    # The server's hours are no device's.
    assert sum(one.clients for one in bill.devices.values()) == 20
    assert sum(one.amount for one in bill.devices.values()) == pytest.approx(energy.amount + traffic.amount)


def test_what_has_no_price_is_not_counted():
    run = dry("costs={traffic: 2 USD/GB}", "server.rounds=2")
    bill = run.costs["money"]
    assert (bill.unit, [*bill.whole]) == ("USD", ["total", "traffic"])
    assert bill.whole["total"].amount == pytest.approx(run.bytes * 2e-9)
    assert dry("server.rounds=2").costs is None


@pytest.mark.usefixtures("unfinished")
def test_an_unknown_energy_is_not_free():
    fleet = f"fleet={{members: [{{device: {UNPOWERED}, link: ethernet}}]}}"
    bill = dry(PRICES, "server.rounds=2", fleet).costs["money"]
    assert (bill.whole["energy"].amount, bill.whole["total"].amount) == (None, None)
    assert bill.whole["total"].known == 0
    assert bill.devices[UNPOWERED].amount is None
    assert bill.whole["traffic"].amount > 0
    only = dry("costs={traffic: 2 USD/GB}", "server.rounds=2", fleet).costs["money"]
    assert only.devices[UNPOWERED].amount == pytest.approx(only.whole["total"].amount)


def test_until_a_target_it_is_what_that_took(tmp_path):
    """Not what the whole run took; and a replay has other prices for the same run."""
    prices = {"energy": "0.36 EUR/kWh", "traffic": "0.05 EUR/GB", "server": "0.40 EUR/h"}
    folder = rich(tmp_path / "run", costs=prices).folder
    (run,) = summaries([folder])
    took, total = run.target.global_, run.costs["money"].to_target["global"]["total"]
    mine = took.energy.joules * JOULE + took.bytes * BYTE + took.t_s * SECOND
    assert total.amount == pytest.approx(mine)
    assert total.amount < run.costs["money"].whole["total"].amount
    (again,) = edgefl.replay(folder, overrides={"costs": {"traffic": "0.10 EUR/GB"}}).summary()
    assert again.costs["money"].to_target["global"]["total"].amount == pytest.approx(2 * took.bytes * BYTE)


def test_currencies_are_not_compared():
    euros, dollars = (dry(f"costs={{traffic: 1 {unit}/GB}}", "server.rounds=1") for unit in ("EUR", "USD"))
    found = cells(every([run_of(costs=euros.costs), run_of(costs=dollars.costs)]))
    assert found["cost"][0].endswith(" EUR")
    assert found["cost"][1] == found["traffic"][1] == "-"


@pytest.mark.parametrize(
    ("prices", "words"),
    [
        ("{energy: 0.3 EUR/GB}", "'0.3 EUR/GB' is not a price of energy; write it as 0.30 EUR/kWh"),
        ("{traffic: -1 EUR/GB}", "'-1 EUR/GB' is not a price of traffic"),
        ("{energy: 1 EUR/kWh, server: 1 USD/h}", "give all prices in one currency, not in EUR, USD"),
        ("{}", "give a price: energy, traffic or server"),
    ],
)
def test_a_wrong_price_is_refused(prices, words):
    with pytest.raises(UserError) as refused:
        edgefl.check("quickstart", overrides=["sweep=null", f"costs={prices}"])
    assert words in str(refused.value)
