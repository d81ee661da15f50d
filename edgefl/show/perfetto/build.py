"""Writes a run's timeline to a file that Perfetto opens: https://ui.perfetto.dev."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgefl.analysis.explain.explain import Medians
from edgefl.analysis.explain.path import rounds_of
from edgefl.analysis.run import Run
from edgefl.core.arrays import Floats, Ints
from edgefl.core.availability import Timetable
from edgefl.core.availability.always import Params as Always
from edgefl.core.availability.charging import Charging
from edgefl.core.devices import Board
from edgefl.core.errors import UserError
from edgefl.core.event import ENDINGS, JOULES, Kind, joules
from edgefl.core.files import replacing
from edgefl.core.plan import Plan
from edgefl.planning.fleets import recorded_devices
from edgefl.show.answers import Steps, quiet
from edgefl.show.perfetto.choice import TimelineChoice, Window, clients_of, window_of
from edgefl.show.perfetto.packets import Arguments, Packets
from edgefl.show.table import STANDS
from edgefl.store.plans import read_plan
from edgefl.store.reader import Reader

MOST_INTERVALS = 500_000
"""Of times away, more are not shown."""
_SHOWN_EVERY = 256
_FOR_EVER_NS = 2**62
_TIMES = ("dispatched_s", "received_s", "worked_s", "arrived_s", "until_s")
# A job's stages: each with its beginning, its end, and the columns of its arguments. ``busy_s`` leaves out
# pauses. ``active_j`` is the energy above idle, ``idle_j`` that at idle power, and ``tail_j`` the radio's
# after an earlier transfer.
_STAGES: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    (
        "down", "dispatched_s", "received_s",
        {"bytes": "down_bytes", "busy_s": "receive_s", "active_j": "receive_j", "idle_j": "receive_idle_j",
         "tail_j": "earlier_tail_j"},
    ),
    (
        "compute", "received_s", "worked_s",
        {"flops": "flops", "steps": "steps", "busy_s": "work_s", "full_power_s": "full_power_s",
         "active_j": "work_j", "idle_j": "work_idle_j", "tail_j": "work_tail_j"},
    ),
    (
        "up", "worked_s", "arrived_s",
        {"bytes": "up_bytes", "busy_s": "transmit_s", "active_j": "transmit_j", "idle_j": "transmit_idle_j"},
    ),
)  # fmt: skip
# Columns of ``JOB``, and some that follow.
_COLUMNS = (
    "job", "client", "exchange", "round", "version", "into_version", "ending", "dispatched_turn", "energy_j",
    "waiting_j",
    *_TIMES, *dict.fromkeys(column for *_, columns in _STAGES for column in columns.values()),
)  # fmt: skip

Columns = Mapping[str, Any]
Away = tuple[Ints, Floats, Floats]
"""Clients, and the virtual seconds from and to which each of them was away, (n,)."""


@dataclass(frozen=True)
class Written:
    """A written timeline, and what it shows: clients with a track, rounds and the exchanges around them."""

    file: str
    bytes: int
    events: int
    clients: int
    jobs: int
    rounds: int


def write_timeline(
    reader: Reader,
    path: Path,
    choice: TimelineChoice = TimelineChoice(),  # noqa: B008 - it is frozen
    *,
    plan: Plan | None = None,
    note: Callable[[str], None],
    progress: Steps = quiet,
) -> Written:
    """Writes a run's timeline.

    Jobs that are not over are not in a run's directory, and not shown. A plan that is not given is read back,
    and then says what bounds work. ``note`` is called with a line for what is left out.

    Raises:
        UserError: the run is damaged, or has no such clients or rounds.
        RunError: the file cannot be written; an existing file is unchanged.
    """
    run = Run(reader)
    window = window_of(choice, run)
    clients = clients_of(run, choice, window, note)
    devices: Mapping[str, Board] = {}
    if plan is None:
        try:
            plan, devices = read_plan(reader), recorded_devices(reader)
        except UserError as error:
            note(f"when clients were away and what bounds their work is not shown: {error.what}")
    progress("reading jobs", 0, 1)
    if reader.status in STANDS:
        note(f"the run {STANDS[reader.status]}: jobs that were under way are not shown")
    jobs = _jobs(run, clients, window)
    last_s = max(
        float(np.max(jobs["until_s"], initial=0.0)),
        float(np.max(run.merges.t_s, initial=0.0)),
        reader.meta.get("virtual_s", 0.0),
    )
    from_s, to_s = max(window.from_s, 0.0), min(window.to_s, last_s)
    away = {} if plan is None else _away_slices(plan, run, clients, from_s, to_s, note)
    for name in _TIMES:
        missing = np.isnan(jobs[name])
        jobs[name] = np.where(missing, -1, nanoseconds(np.where(missing, 0.0, jobs[name])))
    with replacing(path) as temporary, temporary.open("wb") as stream:
        packets = Packets(stream, reader.meta["name"])
        names = ("rounds", "dispatches", "merges", "evaluations")
        rounds, dispatches, merges, evaluations = (packets.track(f"server: {name}") for name in names)
        count = _write_rounds(packets, rounds, run, window)
        _write_dispatches(packets, dispatches, jobs, run.names)
        for counter in _counters(run):
            _write_steps(packets, window, counter)
        merged = [row for row in reader.rows("merges", "version") if window.holds(row["t_s"])]
        versions, bounds = (
            {row["version"] for row in merged},
            _work_bounds(plan, devices) if plan and devices else {},
        )
        why = {
            row["kind"]: row["reason"] or f"its device cannot hold {row['exchange']}"
            for row in reader.rows("refused_kinds")
        }
        first = np.searchsorted(jobs["client"], clients, side="left").tolist()
        last = np.searchsorted(jobs["client"], clients, side="right").tolist()
        for place, client in enumerate(clients.tolist()):
            if place % _SHOWN_EVERY == 0:
                progress("writing clients", place, len(clients))
            kind = int(run.clients.kind[client])
            lane = _Lane(packets, run, client, away.get(client, ()), bounds.get(kind, {}), why.get(kind))
            rows = _job_rows(jobs, first[place], last[place])
            lane.write(rows, run.names, versions)
        _write_merges(packets, merges, jobs, merged)
        _write_evaluations(packets, evaluations, reader, window)
        packets.finish()
    return Written(str(path), path.stat().st_size, packets.count, len(clients), len(jobs["job"]), count)


def _away_slices(
    plan: Plan, run: Run, clients: Ints, from_s: float, to_s: float, note: Callable[[str], None]
) -> dict[int, list[tuple[int, int]]]:
    """When clients were away in a span of virtual time, in nanoseconds, ascending, none touching another.

    What jobs take from batteries is taken where they end, as in the run. Too many intervals are none, with a
    note.

    Raises:
        UserError: the run is damaged.
    """
    if isinstance(plan.fleet.availability, Always):
        return {}
    timetable = plan.fleet.availability.timetable(plan.clients, plan.scenario.seed)
    starts, ends = np.full(len(clients), from_s), np.full(len(clients), to_s)
    if isinstance(timetable, Charging):
        pieces = _drained_text(timetable, run, clients, starts, ends)
    else:
        pieces = _walked(timetable, clients, starts, ends)
    found, count = [(clients[:0], np.zeros(0), np.zeros(0))], 0
    for piece in pieces:
        found.append(piece)
        count += len(piece[0])
        if count > MOST_INTERVALS:
            note(
                f"when clients were away is not shown: there are more than {MOST_INTERVALS:,} intervals; "
                "choose fewer --clients or --rounds"
            )
            return {}
    client, begin_s, end_s = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((begin_s, client))
    times: dict[int, list[tuple[int, int]]] = {}
    columns = (client, nanoseconds(begin_s), nanoseconds(end_s))
    for number, begin_ns, end_ns in zip(*(column[order].tolist() for column in columns), strict=True):
        own = times.setdefault(number, [])
        from_ns = own.pop()[0] if own and begin_ns <= own[-1][1] else begin_ns
        own.append((from_ns, end_ns))
    return times


def _walked(timetable: Timetable, clients: Ints, t_s: Floats, to_s: Floats) -> Iterator[Away]:
    """The times that clients are away, one interval of each at a time."""
    at = t_s < to_s
    clients, t_s, to_s = clients[at], t_s[at], to_s[at]
    while len(clients):
        there, changes = timetable.at(clients, t_s)
        until_s = np.minimum(changes, to_s)
        yield clients[~there], t_s[~there], until_s[~there]
        on = changes < to_s
        clients, t_s, to_s = clients[on], changes[on], to_s[on]


def _drained_text(
    timetable: Charging, run: Run, clients: Ints, from_s: Floats, to_s: Floats
) -> Iterator[Away]:
    """As ``_walked``, from one end of a client's jobs to the next."""
    jobs = run.jobs[np.isin(run.jobs.client, clients)]
    jobs = jobs[np.lexsort((jobs.ended_s, jobs.client))]
    taken_j = sum(np.nan_to_num(jobs[name]) for name in JOULES if not name.endswith("idle_j"))
    first = np.searchsorted(jobs.client, clients, side="left")
    last = np.searchsorted(jobs.client, clients, side="right")
    since_s, nth = from_s, 0
    while len(clients):
        at = first + nth
        more = at < last
        ended_s = to_s.copy()
        ended_s[more] = jobs.ended_s[at[more]]
        yield from _walked(timetable, clients, since_s, np.minimum(ended_s, to_s))
        clients, first, last = clients[more], first[more], last[more]
        from_s, to_s, at, ended_s = from_s[more], to_s[more], at[more], ended_s[more]
        timetable.spend(clients, ended_s, taken_j[at])
        since_s, nth = np.maximum(ended_s, from_s), nth + 1


def _jobs(run: Run, clients: Ints, window: Window) -> dict[str, Any]:
    """The jobs that are shown, by client, as columns."""
    shown = np.flatnonzero(np.isin(run.jobs.client, clients) & window.jobs(run))
    shown = shown[np.argsort(run.jobs.client[shown], kind="stable")]
    more = {"until_s": run.until_s, "energy_j": joules(run.jobs)}
    return {name: (more[name] if name in more else run.jobs[name])[shown] for name in _COLUMNS}


def _job_rows(columns: Columns, first: int, last: int) -> Iterator[dict[str, Any]]:
    for row in zip(*(column[first:last].tolist() for column in columns.values()), strict=True):
        yield dict(zip(columns, row, strict=True))


def _write_rounds(packets: Packets, track: int, run: Run, window: Window) -> int:
    """Rounds, and what came before and after them, each until its last merge; how many."""
    rounds = rounds_of(run)
    shown = np.flatnonzero((rounds.to_s > window.from_s) & (rounds.from_s < window.to_s))
    inside = run.in_rounds[run.merges.exchange[rounds.first]]
    columns = (column[shown].tolist() for column in (rounds.number, inside, rounds.from_s, rounds.to_s))
    for number, is_round, from_s, to_s in zip(*columns, strict=True):
        name = f"round {number}" if is_round else "start" if number < 0 else "end"
        packets.begin(track, _ns(from_s), name, ("round",), {"round": number})
        packets.end(track, _ns(to_s))
    return len(shown)


def _write_dispatches(packets: Packets, track: int, jobs: Columns, exchanges: Sequence[str]) -> None:
    """Those of the jobs that are shown, whose flows begin there."""
    turns, first, count = np.unique(jobs["dispatched_turn"], return_index=True, return_counts=True)
    flows = _flows(jobs["dispatched_turn"], jobs["job"])
    for turn, row, jobs_shown in zip(turns.tolist(), first.tolist(), count.tolist(), strict=True):
        facts = {name: jobs[name][row].item() for name in ("round", "version")}
        exchange = exchanges[jobs["exchange"][row]]
        t_ns, facts = jobs["dispatched_s"][row].item(), {"exchange": exchange, **facts, "jobs": jobs_shown}
        packets.instant(track, t_ns, "dispatch", facts, through=flows[turn])


def _write_merges(packets: Packets, track: int, jobs: Columns, merged: Sequence[Columns]) -> None:
    """Merges, which the flows of jobs end at."""
    flows = _flows(jobs["into_version"], jobs["job"])
    names = ("version", "round", "exchange", "jobs", "slowest_client", "loss")
    for row in merged:
        facts, into = {name: row[name] for name in names}, flows.get(row["version"], ())
        packets.instant(track, _ns(row["t_s"]), "merge", facts, into=into)


def _write_evaluations(packets: Packets, track: int, reader: Reader, window: Window) -> None:
    scores: dict[int, dict[str, float]] = defaultdict(dict)
    for row in reader.query("SELECT version, model, accuracy, loss FROM evaluations ORDER BY model"):
        scores[row["version"]] |= {f"{row['model']} {name}": row[name] for name in ("accuracy", "loss")}
    for row in reader.query(
        "SELECT version, round, t_s FROM server_events WHERE kind = 'evaluated' "
        "UNION SELECT version, round, t_s FROM evaluations ORDER BY version"
    ):
        if window.holds(row["t_s"]):
            facts = {"version": row["version"], "round": row["round"], **scores[row["version"]]}
            packets.instant(track, _ns(row["t_s"]), "evaluation", facts)


def _ns(t_s: float) -> int:
    return int(nanoseconds(np.array(t_s)))


def _flows(keys: Ints, jobs: Ints) -> dict[int, list[int]]:
    """The flows of jobs by key: a job's number and one more, as 0 is none."""
    order = np.argsort(keys, kind="stable")
    found, starts = np.unique(keys[order], return_index=True)
    pieces = np.split(jobs[order] + 1, starts[1:])
    return {key: piece.tolist() for key, piece in zip(found.tolist(), pieces, strict=False)}


def _work_bounds(plan: Plan, devices: Mapping[str, Board]) -> dict[int, dict[str, str]]:
    """What bounds most of the work of each kind of client, with its share, by kind and exchange."""
    clients, medians = plan.clients, Medians(plan, devices)
    found: dict[int, dict[str, str]] = defaultdict(dict)
    for kind in np.unique(clients.kind[clients.admitted]).tolist():
        for place, prices in enumerate(plan.prices):
            bounds = medians.bounds(place, kind)
            if bounds is not None and bounds.seconds > 0:
                name, seconds = max(bounds._asdict().items(), key=lambda one: one[1])
                share = f"{100 * seconds / bounds.seconds:.0f}%"
                found[kind][prices.exchange] = f"{name.removesuffix('_s')} ({share} of the work)"
    return found


class _Lane:
    """One client's track, written in order of time: its jobs with their stages, and when it was away."""

    def __init__(
        self,
        packets: Packets,
        run: Run,
        client: int,
        away: Sequence[tuple[int, int]],
        bounds: Mapping[str, str],
        refused: str | None,
    ) -> None:
        """``away`` has nanoseconds, ascending, ``bounds`` what bounds the client's work, by exchange."""
        row = run.kinds[run.clients.kind[client]]
        self._packets, self._away, self._bounds = packets, away, bounds
        self._facts: dict[str, Any] = {name: row[name] for name in ("device", "link", "model")}
        self._facts["slowdown"] = float(run.clients.slowdown[client])
        about = f"{row['link']}, {row['dtype']}, {row['model']}, training samples: {row['samples']}"
        if not run.clients.admitted[client]:
            about = f"refused: {refused}" if refused else "refused"
        self._track = packets.track(f"client {client} ({row['device']})", about=about)
        self._nth = self._now = 0

    def _begin(self, t_ns: int, name: str, category: str, arguments: Arguments, **flows: Any) -> None:
        self._until(t_ns)
        self._packets.begin(self._track, t_ns, name, (category,), arguments, **flows)

    def _end(self, t_ns: int) -> None:
        self._until(t_ns)
        self._packets.end(self._track, t_ns)

    def _until(self, t_ns: int) -> None:
        """Writes the times away up to a time; inside a job they are parts of its stages."""
        while self._nth < len(self._away):
            from_ns, to_ns = self._away[self._nth]
            begins, ends = max(from_ns, self._now), min(to_ns, t_ns)
            if begins < ends:
                self._packets.begin(self._track, begins, "away", ("away",))
                self._packets.end(self._track, ends)
            if to_ns > t_ns:
                break
            self._nth += 1
        self._now = t_ns

    def write(self, jobs: Iterator[Columns], exchanges: Sequence[str], merged: Collection[int]) -> None:
        """Writes the client's jobs, in order; their times are whole nanoseconds, -1 for none.

        ``exchanges`` are the names of all by place, ``merged`` the versions whose merges are shown.
        """
        for job in jobs:
            ending, exchange = str(ENDINGS[job["ending"]]), exchanges[job["exchange"]]
            mark = "" if ending == Kind.MERGED else f" ({ending})"
            into = job["into_version"]
            facts = {name: job[name] for name in ("job", "round", "version")} | {"ending": ending}
            if into >= 0:
                facts |= {"into_version": into, "staleness": into - 1 - job["version"]}
            facts |= {name: job[name] for name in ("energy_j", "waiting_j")} | self._facts
            flow = {"through" if into in merged else "into": (job["job"] + 1,)}
            self._begin(job["dispatched_s"], exchange + mark, ending, facts, **flow)
            for stage, begins, ends, columns in _STAGES:
                from_ns, to_ns = job[begins], job[ends]
                if from_ns < 0:
                    break
                over = job["until_s"] if to_ns < 0 else to_ns
                arguments = {name: job[column] for name, column in columns.items()}
                if over == from_ns and not any(arguments.values()):
                    continue
                if stage == "compute":
                    arguments["bound_by"] = self._bounds.get(exchange)
                self._begin(from_ns, stage + (mark if to_ns < 0 else ""), stage, arguments)
                self._end(over)
            self._end(job["until_s"])
        self._until(_FOR_EVER_NS)


MOST_POINTS = 100_000
"""A counter that changes more often shows its value at so many times, evenly spaced."""

NS = 1e9


class Counter(NamedTuple):
    """What is counted over a run, of all clients.

    Attributes:
        t_s, change: when it changes, in any order, and by how much, (n,).
        starts: whether it is 0 before its first change.
    """

    name: str
    unit: str
    about: str
    t_s: Floats
    change: Floats
    starts: bool = True


def nanoseconds(t_s: Floats) -> Ints:
    """Times in whole nanoseconds; their order stays."""
    return np.rint(t_s * NS).astype(np.int64)


def _counters(run: Run) -> Iterator[Counter]:
    jobs = run.jobs
    active = _spans(jobs.dispatched_s, run.until_s, np.ones(len(jobs)))
    yield Counter("active clients", "", "clients with a job under way", *active)
    for way, from_s, to_s in (
        ("down", jobs.dispatched_s, run.over_s("received_s")),
        ("up", jobs.worked_s, run.until_s),
    ):
        moved = jobs[f"{way}_bytes"]
        # What takes no time counts nothing.
        under_way = (to_s > from_s) & (moved > 0)
        begin_s, end_s, moved = from_s[under_way], to_s[under_way], moved[under_way]
        about = f"mean rates of the {way}loads under way"
        if run.is_shared:
            about += "; rates change meanwhile, so that the sum may exceed what a shared link carries"
        rates = _spans(begin_s, end_s, 8.0 * moved / (end_s - begin_s))
        yield Counter(f"{way}link", "bit/s", about, *rates)
        if run.is_shared:
            each = _spans(begin_s, end_s, np.ones(len(moved)))
            yield Counter(f"{way}loads", "", f"{way}loads under way", *each)
    about = "of all clients whose energy is known in full; each stage counts when it ends"
    yield Counter("energy", "J", about, *_energy(run))
    rows = run.reader.query("SELECT model, t_s, accuracy FROM evaluations ORDER BY model, version")
    for model, scores in groupby(rows, itemgetter("model")):
        t_s, accuracy = np.array([(row["t_s"], row["accuracy"]) for row in scores]).T
        changes = np.diff(accuracy, prepend=0.0)
        yield Counter(f"accuracy, {model}", "", "on test data", t_s, changes, starts=False)


def _spans(from_s: Floats, to_s: Floats, height: Floats) -> tuple[Floats, Floats]:
    """Times and changes of a sum of spans."""
    return np.concatenate([from_s, to_s]), np.concatenate([height, -height])


def _energy(run: Run) -> tuple[Floats, Floats]:
    """When energy was charged, and how much."""
    known, tails = np.flatnonzero(run.known[run.jobs.client]), run.known[run.tails["client"]]
    jobs, ends = run.jobs[known], ("received_s", "worked_s", "arrived_s")
    charged = (
        jobs.receive_j + jobs.receive_idle_j + jobs.earlier_tail_j,
        jobs.work_j + jobs.work_tail_j + jobs.work_idle_j,
        jobs.transmit_j + jobs.transmit_idle_j,
    )
    return (
        np.concatenate([*(run.over_s(at, known) for at in ends), run.tails["t_s"][tails]]),
        np.concatenate([*charged, run.tails["joules"][tails]]),
    )


def _write_steps(packets: Packets, window: Window, counter: Counter) -> None:
    """A counter's values, each from one of its changes on."""
    t_ns, deltas, about = nanoseconds(counter.t_s), counter.change, counter.about
    if counter.starts:
        t_ns, deltas = np.append(0, t_ns), np.append(0.0, deltas)
    times, place = np.unique(t_ns, return_inverse=True)
    if len(times) > MOST_POINTS:
        # A change shows at the end of its step.
        step = -(-int(times[-1]) // MOST_POINTS)
        times, place = np.unique(-(-t_ns // step) * step, return_inverse=True)
        about = f"{about}; every {step / NS:g} s"
    value: Floats = np.cumsum(np.bincount(place, deltas, len(times)))
    # What is left of sums that end at 0 is rounding.
    value[np.abs(value) < 1e-9 * np.abs(value).max(initial=0.0)] = 0.0
    from_ns, to_ns = (nanoseconds(np.clip(end, 0.0, 9e9)) for end in np.array(window))
    before = int(np.searchsorted(times, from_ns, side="right")) - 1
    shown = slice(max(before, 0), int(np.searchsorted(times, to_ns, side="right")))
    track = packets.track(counter.name, unit=counter.unit, about=about)
    for at_ns, now in zip(np.maximum(times[shown], from_ns).tolist(), value[shown].tolist(), strict=True):
        packets.counter(track, at_ns, now)
