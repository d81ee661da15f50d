"""Profiles as a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType

from edgefl.planning.costs import ClaimedSavings, Profile
from edgefl.planning.sensitivity import Sensitivity
from edgefl.report import costs
from edgefl.report.device_rounds import device_rounds
from edgefl.report.layers import checked
from edgefl.report.sensitivity import sensitivity
from edgefl.report.tables import Heading, Line


def profiles(
    found: Sequence[Profile], claims: Sequence[ClaimedSavings], swept: Sequence[Sensitivity]
) -> RenderableType:
    """What a round costs, published savings beside ours, and what the figures depend on."""
    overview = [device_rounds(found)] if len(found) > 1 else []
    each = (block for one in found for block in _profile(one))
    published = [costs.published(claims)] if claims else []
    return Group(*overview, *each, *published, *map(sensitivity, swept))


def _profile(one: Profile) -> Iterator[RenderableType]:
    yield Heading(f"{one.scenario}: {one.method}")
    for note in one.assumed:
        yield Line(f"assumed: {note}", "dim")
    yield Line(f"network: {costs.links(one.exchanges)}", "dim")
    yield costs.profile(one)
    if one.layers:
        yield checked(one.layers)
