"""A run's learning, built again of what its directory has: as it ran, or planned on another fleet.

On another fleet it needs no data, and what was traced is not traced again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgefl.core.cost import Trace
from edgefl.core.drafts import Draft, redrafted
from edgefl.core.errors import DataError, UserError
from edgefl.core.overrides import Override
from edgefl.core.plan import Assumption, Plan
from edgefl.core.scenario import LABELS, LearningSpec, TaskSpec, Wire, as_given
from edgefl.core.validation import validate
from edgefl.core.yamls import RESOLVED
from edgefl.data import Spec
from edgefl.data.federation import Federation, public_images, sized
from edgefl.planning.assumed import assumptions, recorded_assumptions
from edgefl.planning.fit import FIT, fitted_size
from edgefl.planning.fleets import recorded_devices, recorded_fleet
from edgefl.planning.learning import DataAccess, Learning, data_of, learn_from
from edgefl.planning.plan import Ground, Planned, check_server, ground_of, planned, server_board
from edgefl.planning.pricing import trace_key
from edgefl.store.plans import read_plan
from edgefl.store.reader import Reader

# In the table meta of a replay: where its learning comes from.
REPLAYED = "replayed"
# What may change while the learning stays the same.
SETTABLE = ("fleet", "server", "wire", "costs")


def learning_of(reader: Reader, access: DataAccess) -> Learning:
    """The learning of a run, on the data that it had.

    An access without a folder reads them where the run found them.

    Raises:
        UserError: the run is damaged, or a component or data that it names are gone or have changed.
    """
    resolved, data_dir = reader.document.data, reader.meta.get("data_dir")
    if access.folder is None and isinstance(data_dir, str) and Path(data_dir).is_dir():
        access = DataAccess(Path(data_dir), download=access.download, need=access.need)
    spec, document = LearningSpec.of_resolved(resolved["scenario"], f"{reader.folder.name}/plan.yaml")
    data = data_of(spec, document, access)
    if access.need == "pixels" and data.spec.content != resolved.get("data", ""):
        raise DataError(
            f"the images of {data.spec.name} have changed since the run",
            where=getattr(spec.task.dataset, "path", ""),
            hint="restore the files as they were, or run the scenario again",
        )
    return learn_from(spec, document, data)


def federation_of(reader: Reader, task: TaskSpec) -> Federation:
    """What is known of a run's data without their files, which need not be there any more.

    The numbers of samples, all in all and by class as far as the run has them; images and labels there are
    none, and public images are zeros. A damaged run is a ``UserError``.
    """
    resolved, spec = reader.document.data, Spec(**reader.meta["data"])
    rows = reader.arrays(
        "SELECT samples, test_samples FROM fleet JOIN kinds USING (kind) ORDER BY client",
        samples=np.int64,
        test_samples=np.int64,
    )
    tests = rows["test_samples"].tolist()
    known = reader.arrays(
        "SELECT client, label, samples FROM class_counts", client=np.int64, label=np.int64, samples=np.int64
    )
    # (clients, classes); empty where the run does not say.
    counts = np.zeros((len(tests) if len(known["client"]) else 0, spec.classes), dtype=np.int64)
    counts[known["client"], known["label"]] = known["samples"]
    public = None
    if task.public is not None:
        public = public_images(spec, None, np.zeros(task.public.samples, dtype=np.int64))
    return replace(
        sized(spec, rows["samples"]),
        test_parts=tuple(np.zeros(count, dtype=np.int64) for count in tests) if any(tests) else (),
        class_counts=counts,
        assumed=LABELS in resolved["scenario"]["task"],
        public_x=public,
        public_content=resolved.get("public_data", ""),
    )


class Replanned(NamedTuple):
    """A run's plan as its directory has it, and that of the same learning with other settings."""

    recorded: Plan
    planned: Planned


def replanned(reader: Reader, overrides: Sequence[Override], name: str) -> Replanned:
    """Plans a run's learning anew, as ``planning.plan`` would plan the same scenario with these settings.

    Where the fleet is not replaced, it is the recorded one, whatever has become of its files.

    Raises:
        UserError: an override is wrong or changes what was learned, the run is damaged, or a component that
            it names is gone.
    """
    for override in overrides:
        if override.keys[0] not in SETTABLE:
            can = f"{', '.join(SETTABLE[:-1])} and {SETTABLE[-1]}"
            raise UserError(
                f"a replay cannot change {override.key!r}: nothing is learned again",
                where=override.value.place(),
                hint=f"it can change {can}; for others run the scenario",
            )
    resolved = reader.document.data
    kept: dict[str, Any] = {key: reader.meta[key] for key in ("published", "scale") if key in reader.meta}
    settings = {**as_given(resolved["scenario"]), "name": name, **kept}
    changed = [override.keys for override in overrides if override.keys[0] == "fleet"]
    if changed and ["fleet"] not in changed:
        # As it was read then, with all its links.
        settings["fleet"] = resolved["fleet"]
    draft = redrafted(settings, f"{reader.folder.name}/plan.yaml", overrides)
    recorded = read_plan(reader)
    ground = _ground(reader, draft, changed, recorded.assumed)
    before = recorded.server_work
    same = before is not None and before.name == draft.scenario.server.device
    ground = ground._replace(server=before.board if before and same else server_board(draft))
    learning = learn_from(
        draft.scenario.learning, draft.document, federation_of(reader, recorded.scenario.task)
    )
    notes = list(_notes(recorded, learning, learned_wire(reader)))
    found = planned(draft, learning, ground, _traces(recorded), reader.meta["data_notes"], notes)
    return Replanned(recorded, found)


def learned_wire(reader: Reader) -> Wire:
    """The codecs that a run's accuracies were learned with: of a replay, those of the run that trained.

    A damaged run is a ``UserError``.
    """
    document = replace(reader.document, context=RESOLVED)
    replayed = reader.meta.get(REPLAYED)
    wire = replayed["wire"] if replayed else document.data["scenario"]["wire"]
    return validate(Wire, wire, document, ["scenario", "wire"])


def _ground(reader: Reader, draft: Draft, changed: Sequence[Sequence[str]], assumed: Sequence[str]) -> Ground:
    """The fleet and its devices: the recorded ones, but for those that the changed keys replace."""
    fleet, known = recorded_fleet(reader), recorded_devices(reader)
    before = recorded_assumptions(assumed, known, fleet.links)
    if not changed:
        check_server(draft)
        return Ground(fleet, known, before)
    ground = ground_of(draft, DataAccess())
    if ["fleet"] in changed:
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


def _notes(recorded: Plan, learning: Learning, learned: Wire) -> Iterator[str]:
    """Where a fitted batch size comes from, and codecs other than those that accuracies were learned with."""
    if any(line.kind == FIT for line in recorded.assumed if isinstance(line, Assumption)):
        yield fitted_size(learning.spec.local.size, "which was fitted to the fleet of the run that trained")
    for way in ("down", "up"):
        now, before = getattr(learning.spec.wire, way), getattr(learned, way)
        if before != now and not (before.LOSSLESS and now.LOSSLESS):
            names = now.name, before.name
            yield f"wire.{way}: bytes are those of {names[0]}, and accuracies were learned with {names[1]}"
