"""The commands as functions, with their words: each answers what its command prints.

A mistake is a ``UserError``. Where an argument may be several, a list or a single one will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group

from edgefl.core.errors import EdgeflError, RunError, UserError
from edgefl.core.units import show_count
from edgefl.core.user_code import asked
from edgefl.report.answers import Answer, Steps, quiet, several, unless

if TYPE_CHECKING:
    from edgefl.core.overrides import Override
    from edgefl.report.exports import Exported
    from edgefl.report.summary import DryRun
    from edgefl.runs.group import Overrides, Scenario
    from edgefl.runs.results import Runs

    OneOrMore = str | Sequence[str]


@asked
def check(
    scenarios: Scenario | Sequence[Scenario] = (),
    *,
    method: str | None = None,
    overrides: Overrides = (),
    seed: int | None = None,
    seeds: int | None = None,
    link: str | None = None,
    steps: Steps = quiet,
) -> Answer:
    """Validates scenarios and runs their clock, without training and data files; none given stands for all.

    Args:
        scenarios: files, names, or settings as mappings.
        method: a method to hold against the contract of all methods instead.
        overrides: settings, as of ``run``; with a method, those of its check.
        seed: as of ``run``.
        seeds: as of ``run``.
        link: as of ``run``.
        steps: called with each scenario.

    Raises:
        UserError: an argument or a scenario is wrong; what was found of the others is its ``answer``.
    """
    from edgefl.runs.group import as_overrides

    names, given = several(scenarios), as_overrides(overrides, seed=seed, link=link)
    if method is not None:
        if names or link or seeds:
            raise UserError("--method takes no scenario, no --link and no --seeds", where="--method")
        return _promises(method, given)
    if names:
        return _dry_runs(names, given, seeds, steps)
    if seeds:
        raise UserError("--seeds needs a scenario", where="--seeds", hint="edgefl check quickstart --seeds 5")
    return _overviews(given, steps)


def _dry_runs(names: Sequence[Scenario], given: Overrides, seeds: int | None, steps: Steps) -> Answer:
    from edgefl.planning.assumed import in_short
    from edgefl.report.comparison import dry_runs
    from edgefl.runs.dry import dry_run, name_of

    checked: list[DryRun] = []
    mistakes: list[EdgeflError] = []
    for place, name in enumerate(names):
        # A sweep of thousands of runs takes minutes.
        steps(f"checking {name_of(name)}", place, len(names))
        try:
            checked += dry_run(name, given, seeds)
        except EdgeflError as error:
            mistakes.append(error)
    failed = [one.summary for one in checked if one.summary.status == "failed"]
    answer = Answer(
        "check",
        show_count(len(checked), "run"),
        {"runs": checked},
        dry_runs(checked) if checked else Group(),
        notes=in_short(_noted(checked)),
        errors=[RunError(f"{one.name} failed: {one.reason}") for one in failed],
    )
    return unless(mistakes, answer)


def _noted(checked: Sequence[DryRun]) -> list[str]:
    """What was assumed and who was refused: each note once, with its runs where not all share it."""
    runs: dict[str, list[str]] = {}
    for run in checked:
        for note in run.notes:
            runs.setdefault(note, []).append(run.summary.name)
    told = []
    for note, names in runs.items():
        everyone = len(names) == len(checked) or note.startswith(f"{names[0]}: ")
        told.append(note if everyone or ": " in note else f"{', '.join(dict.fromkeys(names))}: {note}")
    return told


def _overviews(given: Overrides, steps: Steps) -> Answer:
    from edgefl.core.catalogue import entries
    from edgefl.planning.assumed import in_short
    from edgefl.planning.learning import DataAccess
    from edgefl.report.overviews import Overview, overviews
    from edgefl.runs.overview import overview

    found: list[Overview] = []
    mistakes: list[EdgeflError] = []
    names, access = list(entries("scenarios")), DataAccess(need="embedded")
    for place, name in enumerate(names):
        steps(f"checking {name}", place, len(names))
        try:
            found.append(overview(name, given, access))
        except EdgeflError as error:
            mistakes.append(error)
    answer = Answer(
        "check",
        show_count(len(found), "scenario"),
        {"scenarios": found},
        overviews(found),
        notes=in_short(line for each in found for line in each.assumed)[-1:],
        errors=[RunError(message) for each in found for message in each.failed],
    )
    return unless(mistakes, answer)


def _promises(name: str, given: Sequence[Override]) -> Answer:
    """Which promises a method keeps; broken ones are a failure."""
    from edgefl.core.catalogue import find
    from edgefl.runs.contract import check_method
    from edgefl.runs.contract.findings import promises, told

    find("methods", name, where="--method")
    findings = check_method({"name": name}, given)
    broken = [one for one in findings if one.kept is False]
    failed = RunError(f"{name} breaks {show_count(len(broken), 'promise')}")
    failed.trace = "\n".join(dict.fromkeys(one.trace for one in broken if one.trace))
    return Answer(
        "check",
        name,
        {"method": name, "promises": findings},
        promises(name, findings),
        lines=list(told(broken)),
        errors=[failed] if broken else [],
    )


@asked
def profile(
    scenario: Scenario,
    *,
    device: OneOrMore = (),
    link: str | None = None,
    dtype: str | None = None,
    layers: bool = False,
    measure_memory: bool = False,
    sensitivity: float | None = None,
    overrides: Overrides = (),
    seed: int | None = None,
    steps: Steps = quiet,
) -> Answer:
    """What one round costs a client: compute, memory, bytes, time and energy; nothing is trained.

    Args:
        scenario: a file, a name, or the settings as a mapping.
        device: devices to price, or "all"; the fleet's own by default.
        link: a network class in place of the fleet's.
        dtype: "fp32", "fp16", "bf16" or "int8"; the fleet's own type by default.
        layers: whether to add work, time, energy and memory layer by layer.
        measure_memory: whether to run the work once on this host, too, in fresh processes.
        sensitivity: a factor of assumed numbers, to say what the figures depend on.
        overrides: as of ``run``.
        seed: as of ``run``.
        steps: called with each run.

    Raises:
        UserError: an argument or the scenario is wrong.
    """
    from edgefl.planning.fleets import dtype_of
    from edgefl.planning.learning import DataAccess
    from edgefl.planning.profile import ProfileOptions, client_rounds
    from edgefl.planning.profile import profile as profile_run
    from edgefl.planning.published import claimed_savings
    from edgefl.planning.swept_rounds import swept_rounds
    from edgefl.report.profiles import profiles
    from edgefl.runs.group import as_overrides, drafts

    options = ProfileOptions(
        list(map(str, several(device))), link, dtype_of(dtype), layers=layers, measure=measure_memory
    )
    access = DataAccess(need="nothing")
    runs = drafts(scenario, as_overrides(overrides, seed=seed))
    found = []
    for place, draft in enumerate(runs):
        steps(f"profiling {draft.scenario.name}", place, len(runs))
        found.append(profile_run(draft, options, access))
    claims = claimed_savings(runs, found)
    swept = []
    records: dict[str, Any] = {"profiles": found, "published": claims}
    if sensitivity is not None:
        rounds = [one for draft in runs for one in client_rounds(draft, options, access)]
        records["sensitivity"] = swept = swept_rounds(rounds, sensitivity)
    return Answer("profile", show_count(len(runs), "run"), records, profiles(found, claims, swept))


@asked
def compare(
    runs: Runs | Sequence[Runs],
    *,
    target: float | None = None,
    sensitivity: float | None = None,
    all: bool = False,  # noqa: A002 - as the option
    steps: Steps = quiet,
) -> Answer:
    """Compares runs: accuracy, and the time, bytes and energy to reach a target; who is ahead.

    Args:
        runs: directories of runs, or what ``run`` or ``open`` returned.
        target: an accuracy in (0, 1]; None for each run's own.
        sensitivity: a factor of assumed numbers, to say whether the order holds; 1 for intervals alone.
        all: whether to show every figure, with its bounds, and differences over seeds.
        steps: called once.

    Raises:
        UserError: an argument is wrong, or no run can be read.
    """
    from edgefl.report.comparison import Comparison, comparison
    from edgefl.report.sensitivity import of_runs
    from edgefl.report.sensitivity import sensitivity as swept
    from edgefl.report.summary import summaries
    from edgefl.report.tables import Line
    from edgefl.runs.results import folders_of

    notes: list[str] = []
    steps("reading runs", 0, 1)
    compared = summaries(folders_of(runs), target, note=notes.append)
    found = None if sensitivity is None else of_runs(compared, sensitivity)
    tables = comparison(compared, every=all)
    view = Group(tables, Line(), swept(found)) if found else tables
    return Answer("compare", show_count(len(compared), "run"), Comparison(compared, found), view, notes=notes)


@asked
def report(
    runs: Runs | Sequence[Runs],
    *,
    out: str | Path | None = None,
    target: float | None = None,
    sensitivity: float | None = None,
    force: bool = False,
    steps: Steps = quiet,
) -> Answer:
    """Makes one HTML page of runs, which opens from disk and needs no network.

    Args:
        runs: as of ``compare``.
        out: the file to write; named after the first of the runs by default.
        target: as of ``compare``.
        sensitivity: as of ``compare``.
        force: whether to overwrite a file that is no report page.
        steps: called once.

    Raises:
        UserError: an argument is wrong, no run can be read, or the file is not to be written.
        RunError: the file cannot be written.
    """
    from edgefl.core.outputs import Own, check_out
    from edgefl.core.units import show_bytes
    from edgefl.report.page.build import page
    from edgefl.report.page.files import SUFFIXES, is_page, named_after, write
    from edgefl.report.page.html import html
    from edgefl.runs.results import folders_of

    folders = folders_of(runs)
    name = named_after(folders)
    path = Path(name if out is None else out)
    check_out(path, name, force=force, suffixes=SUFFIXES, own=Own("a report page", is_page))
    notes: list[str] = []
    steps("reading runs", 0, 1)
    size = write(path, html(page(folders, target, note=notes.append, sensitivity=sensitivity)))
    lines = [f"saved {path} ({show_bytes(size)})"]
    return Answer("report", str(path), {"file": str(path), "bytes": size}, Group(), lines=lines, notes=notes)


@asked
def export(
    run: Runs,
    *,
    client: int | None = None,
    all: bool = False,  # noqa: A002 - as the option
    version: str | int = "last",
    int8: bool = False,
    fp16: bool = False,
    max_drop: float = 0.02,
    raw_input: bool = False,
    softmax: bool = False,
    out: str | Path | None = None,
    data_dir: str | Path | None = None,
    offline: bool = False,
    steps: Steps = quiet,
) -> Answer:
    """Writes a run's model as verified ONNX, with a model card beside it.

    Args:
        run: its directory, or what ``run`` or ``open`` returned.
        client: the client whose own model it is; None for the global model.
        all: whether to export every client's own model.
        version: "last", "best", or a saved version's number.
        int8: whether to quantise weights and activations, calibrated on training images.
        fp16: whether to store both in float16.
        max_drop: the most accuracy that these two may lose.
        raw_input: whether scaling and normalising are left to the caller.
        softmax: whether to add probabilities as a second output.
        out: FILE.onnx, or a folder with ``all``; RUN/export/ by default.
        data_dir: the folder of the dataset's files; by default, where the run found them.
        offline: whether nothing may be downloaded.
        steps: called with each model.

    Raises:
        UserError: an argument is wrong, or the run has no such model.
        EdgeflError: a model fails a check and is not written; of several, the others are the ``answer``.
    """
    from edgefl.export.build import ExportOptions
    from edgefl.export.make import SomeFailedError
    from edgefl.export.make import export as export_run
    from edgefl.export.model import Form
    from edgefl.planning.learning import DataAccess
    from edgefl.runs.results import folder_of

    if all and client is not None:
        raise UserError("--client and --all exclude each other", where="--client")
    if int8 and fp16:
        raise UserError("--int8 and --fp16 exclude each other", where="--int8")
    options = ExportOptions(
        client,
        all,
        str(version),
        Form(raw_input=raw_input, softmax=softmax),
        precision="int8" if int8 else "fp16" if fp16 else "fp32",
        max_drop=max_drop,
    )
    access = DataAccess(Path(data_dir) if data_dir else None, download=not offline)
    try:
        return _exported(export_run(folder_of(run), options, access, Path(out) if out else None, steps))
    except SomeFailedError as error:
        error.answer = _exported(error.done)
        raise


def _exported(done: Sequence[Exported]) -> Answer:
    """What was written; no table where nothing was."""
    from edgefl.report.exports import exports

    if not done:
        return Answer("export", "nothing", {"exports": []}, Group())
    folder = done[0].path.parent
    lines = [f"saved in {folder}, each with a model card (.md)"]
    return Answer("export", show_count(len(done), "model"), {"exports": done}, exports(done), lines=lines)


@asked
def bench(
    model: str | Path,
    *,
    threads: int | None = None,
    batch: int = 1,
    run: Runs | None = None,
    device: OneOrMore = (),
    dtype: str | None = None,
    runs: int = 300,
    budget: float = 30.0,
    predict_only: bool = False,
    card: bool = False,
    steps: Steps = quiet,
) -> Answer:
    """Measures an ONNX file here, compared with PyTorch, and predicts it on other devices.

    Args:
        model: the file.
        threads: measured on one thread and on this many; all cores by default.
        batch: samples per call.
        run: the run that it was exported from, to compare with PyTorch.
        device: devices to predict for, or "all".
        dtype: number type on devices: "fp32", "fp16", "bf16" or "int8"; by default the model's.
        runs: timed calls in each measurement.
        budget: seconds after which a measurement stops.
        predict_only: whether nothing is measured here.
        card: whether to add the measurements to the model card beside the file.
        steps: called with each measurement.

    Raises:
        UserError: an argument or the file is wrong, or the model cannot be run.
        RunError: a measuring process failed.
    """
    from edgefl.core.host import check_threads, cores
    from edgefl.export.bench import BenchOptions
    from edgefl.export.bench import bench as bench_model
    from edgefl.export.latency import read_card, save
    from edgefl.planning.fleets import dtype_of
    from edgefl.report.bench import bench as tables
    from edgefl.runs.results import folder_of

    devices = list(map(str, several(device)))
    if predict_only and (card or not devices):
        raise UserError(
            "--predict-only and --card exclude each other" if card else "--predict-only needs --device NAME",
            where="--predict-only",
        )
    least = {"threads": (threads, 1), "batch": (batch, 1), "runs": (runs, 1), "budget": (budget, 0.1)}
    for name, (value, bound) in least.items():
        if value is not None and value < bound:
            raise UserError(f"--{name} must be at least {bound}, not {value}", where=f"--{name}")
    path = Path(model)
    if card:
        # A missing card is an error before the measurements, which take their time.
        read_card(path)
    check_threads(threads or 1)
    options = BenchOptions(
        threads=() if predict_only else sorted({1, threads or cores()}),
        batch=batch,
        runs=runs,
        budget_s=budget,
        devices=devices,
        dtype=dtype_of(dtype),
        run=None if run is None else folder_of(run),
    )
    result = bench_model(path, options, progress=steps)
    if card:
        save(result)
    return Answer("bench", path.name, result, tables(result))
