"""Savings that papers claim for a method, beside those in the profiles of a scenario's runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from edgefl.core.drafts import Draft
from edgefl.core.params import Component
from edgefl.core.scenario import Published
from edgefl.planning.costs import ClaimedSavings, Profile, Saved


def claimed_savings(drafts: Sequence[Draft], profiles: Sequence[Profile]) -> list[ClaimedSavings]:
    """Compares each claim with the runs of the sweep that differ only in the two methods.

    Args:
        drafts: a scenario's runs.
        profiles: their profiles, in the same order; see ``edgefl.planning.profile``.
    """
    claims = dict.fromkeys(claim for draft in drafts for claim in draft.scenario.published)
    return [
        ClaimedSavings(
            claim, [row for pair in _pairs(claim, drafts, profiles) for row in _rows(claim, *pair)]
        )
        for claim in claims
    ]


def _pairs(
    claim: Published, drafts: Sequence[Draft], profiles: Sequence[Profile]
) -> Iterator[tuple[Draft, Profile, Profile]]:
    """The claimed method's run, its profile, and the profile of the method it is compared with."""
    methods: dict[str, dict[str, tuple[Draft, Profile]]] = {}
    for draft, profile in zip(drafts, profiles, strict=True):
        settings = {key: value for key, value in draft.scenario.resolved().items() if key != "method"}
        alike = methods.setdefault(json.dumps(settings, sort_keys=True), {})
        alike.setdefault(draft.scenario.method.name, (draft, profile))
    for found in methods.values():
        if claim.method in found and claim.against in found:
            draft, profile = found[claim.method]
            yield draft, profile, found[claim.against][1]


def _rows(claim: Published, draft: Draft, ours: Profile, theirs: Profile) -> Iterator[Saved]:
    both = (
        [row for row in profile.exchanges if row.exchange == claim.exchange] for profile in (ours, theirs)
    )
    for model, one, other in zip(draft.scenario.models, *both, strict=True):
        for mine, row in zip(one.devices, other.devices, strict=True):
            memory = sum(other.peak.values())
            seconds = row.price.compute_s if row.price else None
            yield Saved(
                model=_written(model),
                batch_size=ours.batch_size,
                device=row.device,
                latency=_saved(mine.price.compute_s if mine.price else None, seconds),
                memory=_saved(sum(one.peak.values()), memory),
                against_s=seconds,
                against_bytes=memory,
            )


def _written(model: Component) -> str:
    """A model with its parameters, as people write it."""
    return " ".join([model.name, *(f"{key} {value}" for key, value in model.params.items())])


def _saved(now: float | None, before: float | None) -> float | None:
    return None if now is None or not before else 1 - now / before
