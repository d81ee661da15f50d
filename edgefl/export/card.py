"""A model card beside each export: what the model is, how to use it, how good it is and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgefl.analysis.metrics import metrics
from edgefl.analysis.summary import Accuracy, Summary, summary
from edgefl.core.units import show_bytes, show_share
from edgefl.export.model import ExportForm
from edgefl.export.trained import TrainedVersion
from edgefl.show.formats import markdown
from edgefl.show.onnx import Compact, Exported, Parity
from edgefl.show.table import MISSING, Table
from edgefl.show.values import cell
from edgefl.store.reader import read


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
