"""A run's learning planned again on another fleet: without data, and without tracing what was traced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from edgefl.core.cost import Trace
from edgefl.core.drafts import Draft, redrafted
from edgefl.core.errors import UserError
from edgefl.core.overrides import Override
from edgefl.core.plan import Assumption, Plan
from edgefl.core.scenario import Wire, as_given
from edgefl.core.validation import validate
from edgefl.core.yamls import Document
from edgefl.planning.assumed import assumptions, recorded_assumptions
from edgefl.planning.fit import FIT, fitted_size
from edgefl.planning.learning import DataAccess, Learning, codec, learn_from
from edgefl.planning.merging import server_board
from edgefl.planning.plan import Ground, Planned, ground_of, planned
from edgefl.planning.pricing import trace_key
from edgefl.planning.recorded import recorded_devices, recorded_fleet
from edgefl.planning.recorded_learning import federation_of
from edgefl.protocol.codec import Codec
from edgefl.store import Reader, read_plan

# In the table meta of a replay: where its learning comes from.
REPLAYED = "replayed"
# What may change while the learning stays the same.
SETTABLE = ("fleet", "server", "wire", "costs")


class Replanned(NamedTuple):
    """A run's plan, and that of the same learning elsewhere.

    Attributes:
        recorded: as the run's directory has it.
        planned: with the other settings.
    """

    recorded: Plan
    planned: Planned


def replanned(reader: Reader, overrides: Sequence[Override], name: str) -> Replanned:
    """Plans a run's learning anew, as ``planning.plan`` would plan the same scenario with these settings.

    Where the fleet is not replaced, it is the recorded one, whatever has become of its files.

    Args:
        reader: the run.
        overrides: settings of the fleet, the server and the wire.
        name: of the plan.

    Raises:
        UserError: an override is wrong or changes what was learned, the run is damaged, or a component that
            it names is gone.
    """
    for override in overrides:
        _check_settable(override)
    file = f"{reader.folder.name}/plan.yaml"
    draft = _draft(reader, overrides, name, file)
    recorded = read_plan(reader)
    ground = _ground(reader, draft, overrides, recorded.assumed)
    before = recorded.server_work
    same = before is not None and before.name == draft.scenario.server.device
    ground = ground._replace(server=before.board if before and same else server_board(draft))
    learning = learn_from(
        draft.scenario.learning, draft.document, federation_of(reader, recorded.scenario.task)
    )
    learned = learned_wire(reader)
    notes = [*_batch_notes(recorded, learning), *_codec_notes(learned, learning, draft.document)]
    found = planned(draft, learning, ground, _traces(recorded), reader.meta["data_notes"], notes)
    return Replanned(recorded, found)


def learned_wire(reader: Reader) -> Wire:
    """The codecs that a run's accuracies were learned with: of a replay, those of the run that trained.

    Raises:
        UserError: the run is damaged.
    """
    document = reader.document()
    replayed = reader.meta.get(REPLAYED)
    wire = replayed["wire"] if replayed else document.data["scenario"]["wire"]
    return validate(Wire, wire, document, ["scenario", "wire"])


def _check_settable(override: Override) -> None:
    """Refuses to change what was learned.

    Raises:
        UserError: the override would.
    """
    if override.keys[0] not in SETTABLE:
        raise UserError(
            f"a replay cannot change {override.key!r}: nothing is learned again",
            where=override.where,
            hint=f"it can change {', '.join(SETTABLE[:-1])} and {SETTABLE[-1]}; for others run the scenario",
        )


def _draft(reader: Reader, overrides: Sequence[Override], name: str, file: str) -> Draft:
    """The run's settings with others in their place."""
    resolved = reader.resolved()
    kept: dict[str, Any] = {key: reader.meta[key] for key in ("published", "scale") if key in reader.meta}
    settings = {**as_given(resolved["scenario"]), "name": name, **kept}
    if _changes_fleet(overrides) and not _replaces_fleet(overrides):
        # As it was read then, with all its links.
        settings["fleet"] = resolved["fleet"]
    return redrafted(settings, file, overrides)


def _changes_fleet(overrides: Sequence[Override]) -> bool:
    return any(override.keys[0] == "fleet" for override in overrides)


def _replaces_fleet(overrides: Sequence[Override]) -> bool:
    return any(override.keys == ["fleet"] for override in overrides)


def _ground(reader: Reader, draft: Draft, overrides: Sequence[Override], assumed: Sequence[str]) -> Ground:
    """The fleet and its devices: the recorded ones, but for those that are replaced."""
    fleet, known = recorded_fleet(reader), recorded_devices(reader)
    before = recorded_assumptions(assumed, known, fleet.links)
    if not _changes_fleet(overrides):
        return ground_of(draft, DataAccess(), Ground(fleet, known, before))
    ground = ground_of(draft, DataAccess())
    if _replaces_fleet(overrides):
        return ground
    devices = {name: known.get(name, device) for name, device in ground.devices.items()}
    links = {name: link for name, link in ground.fleet.links.items() if fleet.links.get(name) != link}
    new = {name: device for name, device in devices.items() if name not in known}
    kept = recorded_assumptions(before, devices, ground.fleet.links.keys() - links)
    return Ground(ground.fleet, devices, (*kept, *assumptions(new, links)))


def _traces(plan: Plan) -> dict[str, tuple[Trace, ...]]:
    """The recorded traces, by what they depend on."""
    kinds = plan.clients.one_of_each_kind().model.tolist()
    found = {}
    for place, prices in enumerate(plan.prices):
        by_model = [
            [steps for model, steps in zip(kinds, prices.taken, strict=True) if model == one]
            for one in range(len(plan.clients.models))
        ]
        found[trace_key(plan.scenario.learning, place, by_model)] = prices.traces
    return found


def _batch_notes(recorded: Plan, learning: Learning) -> Iterator[str]:
    """Where a batch size comes from that was fitted to the recorded fleet."""
    if any(line.kind == FIT for line in recorded.assumed if isinstance(line, Assumption)):
        yield fitted_size(learning.spec.local.size, "which was fitted to the fleet of the run that trained")


def _codec_notes(learned: Wire, learning: Learning, document: Document) -> Iterator[str]:
    """The ways on which payloads have other values than those that the accuracies were learned with."""
    for way, now in _ways(learning):
        before = codec(learned, way, document)
        if before.component != now.component and not (before.lossless and now.lossless):
            names = now.component.name, before.component.name
            yield f"wire.{way}: bytes are those of {names[0]}, and accuracies were learned with {names[1]}"


def _ways(learning: Learning) -> Iterator[tuple[Literal["down", "up"], Codec]]:
    yield "down", learning.down
    yield "up", learning.up
