"""From a run to verified ONNX files: build, verify, compact, write.

Each stage raises where something is wrong with a ``Candidate``; only the last one touches the disk.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edgefl.analysis.metrics import metrics
from edgefl.analysis.summary import Accuracy, Summary, summary
from edgefl.core.errors import EdgeflError, RunError, UserError
from edgefl.core.files import atomically, check_free
from edgefl.core.units import show_bytes, show_share
from edgefl.export.build import FP32, Candidate, ExportOptions, build
from edgefl.export.compact import compact
from edgefl.export.graph import ExportError
from edgefl.export.latency import latency_section
from edgefl.export.model import ExportForm
from edgefl.export.trained import TrainedVersion, trained
from edgefl.export.verify import verify
from edgefl.planning.learning import DataAccess
from edgefl.show.answers import Steps, quiet
from edgefl.show.formats import markdown
from edgefl.show.onnx import Compact, Exported, Parity
from edgefl.show.table import MISSING, Table
from edgefl.show.values import cell
from edgefl.store.reader import read

# The largest difference between two processors' accuracies that is taken for rounding, as a share of the test
# samples and in samples: assumed, well above what was seen and well below what damage does.
_ROUNDED, _ROUNDED_SAMPLES = 0.005, 2


class SomeFailedError(ExportError):
    """Some of many models failed a check; the others were written, and are ``done``."""

    def __init__(self, done: Sequence[Exported], failed: Sequence[ExportError]) -> None:
        total = len(done) + len(failed)
        reasons = "".join(f"\n  {error.where}: {error.what}" for error in failed)
        super().__init__(
            f"{len(failed)} of {total} models failed their checks and were not written:{reasons}",
            hint=failed[0].hint,
        )
        self.done = tuple(done)


def export(
    folder: Path,
    options: ExportOptions,
    access: DataAccess,
    out: Path | None = None,
    progress: Steps = quiet,
    *,
    force: bool = False,
) -> list[Exported]:
    """Exports models of a run; each is verified before its file is written.

    Args:
        out: a file, or a folder if all clients are exported; ``export/`` in the run by default.
        force: whether to overwrite models and cards.

    Raises:
        UserError: something that was asked for does not exist or is damaged, or the target cannot be written.
        ExportError: a model fails a check; its file is not written.
        SomeFailedError: some of many models fail; the others' files are written.
    """
    if not 0 <= options.max_drop <= 1:
        raise UserError(
            f"--max-drop must be between 0 and 1, not {options.max_drop:g}",
            where="--max-drop",
            hint="0.02 allows two percentage points",
        )
    source = trained(folder, access, options.version)
    train_x = source.federation.train_x
    if train_x is not None and train_x.is_floating_point() and not options.form.raw_input:
        raise UserError(
            f"{source.federation.spec.name} has signals, not pixels that a model could scale itself",
            where="--raw-input",
            hint="pass --raw-input: the model then takes normalised float32 values",
        )
    clients: Sequence[int | None] = [options.client]
    if options.all_clients:
        clients = range(source.federation.clients)
    else:
        # An unknown client is an error before any folder is made.
        source.predictor(options.client)
    paths = [target(source, client, options, out) for client in clients]
    check_free(*(file for path in paths for file in (path, path.with_suffix(".md"))), force=force)
    done: list[Exported] = []
    failed: list[ExportError] = []
    for place, (client, path) in enumerate(zip(clients, paths, strict=True)):
        progress("models", place, len(clients))
        try:
            candidate = build(source, client, options, path)
            parity = verify(candidate)
            _check_reported(source, client, parity)
            done.append(write(candidate, parity, *compact(candidate)))
        except EdgeflError as error:
            error.where = error.where or path.name
            if not options.all_clients:
                raise
            if not isinstance(error, ExportError):
                before = f"{len(done)} of {len(clients)} models were written before it"
                error.hint = f"{error.hint}; {before}".removeprefix("; ")
                raise
            # That one client's model fails a check says nothing about the next one's.
            failed.append(error)
    progress("models", len(clients), len(clients))
    if failed:
        raise SomeFailedError(done, failed)
    return done


def target(source: TrainedVersion, client: int | None, options: ExportOptions, out: Path | None) -> Path:
    """The ONNX file that a client's model, or for None the global one, is written to; its folder is made.

    ``out`` is as of ``export``.

    Raises:
        UserError: ``out`` has another suffix or is a folder, or cannot be written.
    """
    name = "global" if client is None else f"client-{client:0{len(str(source.federation.clients - 1))}d}"
    file = f"{name}.onnx" if options.precision == FP32 else f"{name}-{options.precision}.onnx"
    path = source.folder / "export" / file if out is None else out / file if options.all_clients else out
    where = "--out" if out else str(path.parent)
    if path.suffix != ".onnx":
        raise UserError(f"{path} does not end in .onnx", where=where)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot create {path.parent}: {error.strerror}", where=where) from error
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"{path.parent} is not writable", where=where, hint="choose another --out")
    if path.is_dir():
        raise UserError(f"{path} is a folder", where=where)
    return path


def _check_reported(source: TrainedVersion, client: int | None, parity: Parity) -> None:
    """Compares the accuracy in PyTorch with the one that the run reported, if it did.

    Other processors round otherwise, which may move samples that lie between two classes; more than that
    means other weights, or other data.

    Raises:
        UserError: they contradict each other.
    """
    reported, rounded = source.reported.get(client), max(_ROUNDED, _ROUNDED_SAMPLES / parity.samples)
    if reported is not None and abs(parity.torch_accuracy - reported) > rounded + 1e-9:
        raise UserError(
            f"the model's accuracy is {parity.torch_accuracy:.2%} here, but the run reported {reported:.2%}",
            where=str(source.folder),
            hint="is --data-dir the data that the run was trained on?",
        )


def write(candidate: Candidate, parity: Parity, model: bytes, smaller: Compact | None) -> Exported:
    """Writes a verified model and its card.

    Raises:
        UserError: the files cannot be written, for example because the disk is full.
    """
    source, path, page = candidate.source, candidate.path, candidate.path.with_suffix(".md")
    exported = Exported(
        path=path,
        card=page,
        client=candidate.client,
        size_bytes=len(model),
        parity=parity,
        reported=source.reported.get(candidate.client),
        precision=candidate.options.precision,
        compact=smaller,
        standing=source.standing(candidate.client),
    )
    text = card(source, exported, candidate.form, latency_section(path, model))
    try:
        atomically({page: text.encode(), path: model})
    except RunError as error:
        # The run is fine; the target was badly chosen.
        raise UserError(error.what, where=error.where, hint="its files were not written") from error
    return exported


def card(source: TrainedVersion, exported: Exported, form: ExportForm, measured: str) -> str:
    """The card as Markdown; the section about latency, ``measured``, may be empty."""
    with read(source.folder) as reader:
        run = summary(reader)
        settings = reader.document.data["scenario"]
    spec, client, compact = source.federation.spec, exported.client, exported.compact
    owner = "Global model" if client is None else f"Client {client}"
    whose = "the global model" if client is None else f"the model of client {client}"
    trained = f"trained with {source.meta['method']} on {spec.name} by {run.clients} simulated clients"
    blocks = [
        f"# {source.meta['name']}: {whose}",
        f"{source.model(client)} for {spec.classes} classes, {trained}; version {source.version}.",
        f"**{owner}: {exported.standing}.**" if exported.standing else "",
        "## Use",
        _use(form, spec.shape),
        "## Training",
        _training(source, run, settings),
        "Times, bytes and energy are modelled; the run's `plan.yaml` gives the source of every number.",
        "## Accuracy",
        _accuracies(exported, run.accuracy),
        ""
        if source.meta["evaluated_on"] == "test"
        else "All on training images held out for tuning, not on the test set.",
        _compact(compact, exported.size_bytes) if compact else "",
        "## Parity",
        "Of the float32 model that this file was converted from." if compact else "",
        _parity(exported.parity),
        measured,
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _use(form: ExportForm, shape: tuple[int, ...]) -> str:
    size = " x ".join(map(str, ("batch", *shape)))
    layout = "float32, scaled and normalised by the caller" if form.raw_input else "uint8 pixels, 0 to 255"
    outputs = "`logits` and `probabilities`" if form.softmax else "`logits`"
    return f"Input `{form.input}`: {size}, {layout}.\nOutput: {outputs} (batch x classes)."


def _training(source: TrainedVersion, run: Summary, settings: Mapping[str, Any]) -> str:
    """How the run trained the model, by its summary and its plan."""
    fleet = settings["fleet"] if isinstance(settings["fleet"], str) else "defined in the scenario"
    return _table(
        ("run", source.meta["run_id"]),
        ("seed", str(source.meta["seed"])),
        ("partition", _component(settings["task"]["partition"])),
        ("fleet", fleet),
        ("method", _component(settings["method"])),
        ("rounds", str(source.meta.get("rounds", MISSING))),
        *(
            (metric.label.strip(), cell(metric.of(run), metric.unit))
            for metric in metrics([run])
            if metric.cost or metric.is_known_part or metric.key in {"flops", "waiting_joules"}
        ),
    )


def _accuracies(exported: Exported, reported: Mapping[str, Accuracy]) -> str:
    """What the run reported at its end and for this model, and what the file reaches."""
    return _table(
        *((f"{name}, as reported by the run", _percent(one.value)) for name, one in reported.items()),
        ("this model, as reported by the run", _percent(exported.reported)),
        ("this file, in ONNX Runtime", _percent((exported.compact or exported.parity).accuracy)),
    )


def _compact(compact: Compact, size_bytes: int) -> str:
    """What a smaller file costs and saves."""
    how = "Float16 weights and activations"
    if compact.calibrated_on is not None:
        how = (
            "Int8 by static quantisation (QDQ): one weight scale per output channel, activation ranges "
            f"calibrated on {compact.calibrated_on:,} training images"
        )
    scope = (
        f"Both accuracies are on the same {compact.samples:,} test samples; latencies are median times of "
        "one image on one thread of the exporting machine."
    )
    comparison = _table(
        ("size", show_bytes(size_bytes), show_bytes(compact.fp32_bytes)),
        ("accuracy", _percent(compact.accuracy), _percent(compact.fp32_accuracy)),
        ("latency", f"{compact.latency_ms:.3g} ms", f"{compact.fp32_latency_ms:.3g} ms"),
        heads=("", "this file", "in float32"),
    )
    same = f"Same class as in float32: {_percent(compact.agreement)} of the samples."
    return f"## Precision\n\n{how}. {scope}\n\n{comparison}\n\n{same}"


def _parity(parity: Parity) -> str:
    return _table(
        ("samples", f"{parity.samples:,}"),
        ("largest error of a logit", f"{parity.max_error:.2g}"),
        ("same class as PyTorch", _percent(parity.agreement)),
        ("PyTorch's accuracy", _percent(parity.torch_accuracy)),
    )


def _table(*rows: Sequence[str], heads: Sequence[str] = ("", "")) -> str:
    return markdown(Table(heads, rows, names=2)).rstrip("\n")


def _percent(share: float | None) -> str:
    return "-" if share is None else show_share(share, 2)


def _component(value: Any) -> str:
    """A method or partition with its parameters, as text."""
    if isinstance(value, str):
        return value
    parameters = {key: inner for key, inner in value.items() if key != "name" and inner is not None}
    rest = ", ".join(
        f"{key} {_component(inner) if isinstance(inner, dict) else inner}"
        for key, inner in parameters.items()
    )
    return f"{value['name']} ({rest})" if rest else str(value["name"])
