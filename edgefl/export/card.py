"""A model card beside each export: what it is, what it cost, how good it is, how it was proved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edgefl.core.units import show_bytes, show_flops, show_seconds
from edgefl.export.graph import Form
from edgefl.export.trained import Trained
from edgefl.report.summary import Accuracy, Summary, summary
from edgefl.report.tables import energy
from edgefl.store import read

_PARITY = "## Parity"


def is_card(page: Path) -> bool:
    """Whether a file is a model card."""
    try:
        return _PARITY in page.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return False


def card(found: Trained, export: Mapping[str, Any], form: Form, measured: Sequence[str] = ()) -> str:
    """The card as Markdown.

    Args:
        found: the trained version.
        export: one export as plain data.
        form: what goes in and comes out.
        measured: the lines about its latency.
    """
    with read(found.folder) as reader:
        run = summary(reader)
        settings = reader.resolved()["scenario"]
    spec = found.federation.spec
    whose = "the global model" if export["client"] is None else f"the model of client {export['client']}"
    model = found.model(export["client"])
    trained = f"trained with {found.meta['method']} on {spec.name} by {run.clients} simulated clients"
    return "\n".join(
        [
            f"# {found.meta['name']}: {whose}",
            "",
            f"{model} for {spec.classes} classes, {trained}; version {found.version}.",
            *_standing(export),
            "",
            "## Use",
            "",
            *_use(form, spec.shape),
            *_other_formats(export),
            "",
            "## Training",
            "",
            *_training(found, run, settings),
            "",
            "Times, bytes and energy are modelled; see the run's `plan.yaml` for every number's source.",
            "",
            "## Accuracy",
            "",
            *_accuracies(export, run.accuracy),
            "",
            *_scored_on(found.meta["evaluated_on"]),
            *_compact(export),
            _PARITY,
            "",
            *(["Of the float32 model that this file was made of.", ""] if export["compact"] else []),
            *_parity(export["parity"]),
            "",
            *measured,
        ]
    )


def _training(found: Trained, run: Summary, settings: Mapping[str, Any]) -> list[str]:
    """How the run came to it, by its summary and its plan."""
    fleet = settings["fleet"] if isinstance(settings["fleet"], str) else "of the scenario's own"
    return _table(
        ("run", found.meta["run_id"]),
        ("seed", str(found.meta["seed"])),
        ("partition", _component(settings["task"]["partition"])),
        ("fleet", fleet),
        ("method", _component(settings["method"])),
        ("rounds", str(settings["server"]["rounds"])),
        ("virtual time", show_seconds(run.virtual_s)),
        ("bytes down, up", f"{show_bytes(run.down_bytes)}, {show_bytes(run.up_bytes)}"),
        ("work of all clients", show_flops(run.flops)),
        ("energy of all clients", energy(run.energy)),
    )


def _accuracies(export: Mapping[str, Any], reported: Mapping[str, Accuracy]) -> list[str]:
    """What the run reported at its end, and of this model; what the file reaches."""
    return _table(
        *((f"{name}, as the run reported", _percent(one.value)) for name, one in reported.items()),
        ("this model, as the run reported", _percent(export["reported"])),
        ("this file, in ONNX Runtime", _percent((export["compact"] or export["parity"])["accuracy"])),
    )


def _scored_on(which: str) -> list[str]:
    """That a score is no test score."""
    if which == "test":
        return []
    return ["All on training images held out for tuning, not on the test set.", ""]


def _standing(export: Mapping[str, Any]) -> list[str]:
    """What is to be known of the model before its figures."""
    whose = "Global model" if export["client"] is None else f"Client {export['client']}"
    return ["", f"**{whose}: {export['standing']}.**"] if export["standing"] else []


def _use(form: Form, shape: tuple[int, ...]) -> list[str]:
    size = " x ".join(map(str, ("batch", *shape)))
    layout = "float32, scaled and normalised by the caller" if form.raw_input else "uint8 pixels, 0 to 255"
    outputs = (
        "`logits` and `probabilities` (batch x classes)" if form.softmax else "`logits` (batch x classes)"
    )
    return [f"Input `{form.input}`: {size}, {layout}.", f"Output: {outputs}."]


def _other_formats(export: Mapping[str, Any]) -> list[str]:
    """Where the same model lies in ONNX Runtime's own format."""
    if export["ort"] is None:
        return []
    file, config = (Path(export["ort"][key]).name for key in ("path", "config"))
    text = (
        f"`{file}` is the same in ONNX Runtime's own format; a build of it with "
        f"`--include_ops_by_config {config}` runs this model and holds no more operators than it needs."
    )
    return ["", text]


def _compact(export: Mapping[str, Any]) -> list[str]:
    """What a smaller file cost and saves; nothing for a float32 one."""
    found = export["compact"]
    if found is None:
        return []
    how = "Float16 weights and activations"
    if found["calibrated_on"] is not None:
        how = (
            "Int8 by static quantisation (QDQ): weights with a scale for every output channel, ranges of "
            f"activations from {found['calibrated_on']:,} training images"
        )
    scope = (
        f"Both accuracies are of the same {found['samples']:,} test samples; latencies are medians of one "
        "image on one thread of the machine that exported it."
    )
    return [
        "## Precision",
        "",
        f"{how}. {scope}",
        "",
        "| | this file | in float32 |",
        "|---|---|---|",
        f"| size | {show_bytes(export['size_bytes'])} | {show_bytes(found['fp32_bytes'])} |",
        f"| accuracy | {_percent(found['accuracy'])} | {_percent(found['fp32_accuracy'])} |",
        f"| latency | {found['latency_ms']:.3g} ms | {found['fp32_latency_ms']:.3g} ms |",
        "",
        f"The same class as in float32: {_percent(found['agreement'])}.",
        "",
    ]


def _parity(parity: Mapping[str, Any]) -> list[str]:
    return _table(
        ("samples", f"{parity['samples']:,}"),
        ("largest error of a logit", f"{parity['max_error']:.2g}"),
        ("same class as PyTorch", _percent(parity["agreement"])),
        ("PyTorch's accuracy", _percent(parity["torch_accuracy"])),
    )


def _table(*rows: tuple[str, str]) -> list[str]:
    return ["| | |", "|---|---|", *(f"| {label} | {value} |" for label, value in rows)]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


def _component(value: Any) -> str:
    if isinstance(value, str):
        return value
    given = {key: inner for key, inner in value.items() if key != "name" and inner is not None}
    rest = ", ".join(
        f"{key} {_component(inner) if isinstance(inner, dict) else inner}" for key, inner in given.items()
    )
    return f"{value['name']} ({rest})" if rest else str(value["name"])
