"""What the time and the energy of a client's round depend on, by device."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from edgefl.core.dealing import Kind
from edgefl.core.errors import UserError
from edgefl.core.pricer import Pricer
from edgefl.planning.profile import ClientRound
from edgefl.planning.sensitivity import Records, Sensitivity, Side, check_factor, numbers_of, study


def swept_rounds(rounds: Sequence[ClientRound], factor: float) -> list[Sensitivity]:
    """A study for each device and link, whose sides are the runs and models.

    What has no price there is left out.

    Args:
        rounds: of the runs and their models.
        factor: by which assumed numbers are changed; 1 for intervals alone.

    Raises:
        UserError: the factor is below 1, or there is no number to sweep.
    """
    check_factor(factor)
    setups = dict.fromkeys(setup for each in rounds for setup in each.setups)
    return [found for setup in setups if (found := _study(setup, rounds, factor))]


def _study(setup: Kind, rounds: Sequence[ClientRound], factor: float) -> Sensitivity | None:
    sides: list[Side] = []
    records: dict[str, Any] = {}
    for each in rounds:
        if setup not in each.setups:
            continue
        own = {
            setup.device: each.devices[setup.device],
            f"link {setup.link}": each.links[setup.link],
        }
        figures: Callable[[Records], Mapping[str, float]] = partial(_figures, each, setup)
        try:
            figures(own)
        except UserError:
            continue
        records |= own
        sides.append(Side(each.name, figures))
    if not sides:
        return None
    name = f"{setup.device}, {setup.dtype}, {setup.link}"
    return study(sides, ["energy", "time"], records, numbers_of(records, factor), factor, name)


def _figures(one: ClientRound, setup: Kind, records: Records) -> dict[str, float]:
    """The energy and the time of a round; NaN for an unknown energy.

    Raises:
        UserError: the device cannot do the work, or a number that timing needs is unknown.
    """
    device, link = records[setup.device], records[f"link {setup.link}"]
    pricer = Pricer(setup.device, device, setup.dtype)
    prices = []
    for cost in one.costs:
        if refusal := device.refusal(cost.work, setup.dtype):
            raise UserError(refusal, where=setup.device)
        prices.append(pricer.price(cost, link))
    joules = [price.energy.joules for price in prices]
    known = [one for one in joules if one is not None]
    return {
        "energy": math.fsum(known) if len(known) == len(joules) else math.nan,
        "time": math.fsum(price.seconds for price in prices),
    }
