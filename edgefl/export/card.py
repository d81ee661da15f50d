"""A model card beside each export: what the model is, how to use it, how good it is and what it cost.

Measured latency is kept in a file of its own beside the model, and shown in the card.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from edgefl.core import host
from edgefl.core.documents import document
from edgefl.core.errors import UserError
from edgefl.core.files import atomically
from edgefl.core.units import show_bytes, show_flops, show_seconds
from edgefl.export.model import Form
from edgefl.export.trained import Trained
from edgefl.report.bench import FIGURES, BenchResult, Measured
from edgefl.report.exports import Compact, Exported, Parity
from edgefl.report.summary import Accuracy, Summary, summary
from edgefl.report.tables import energy
from edgefl.store import read

_PARITY, _LATENCY = "## Parity", "## Latency"


def is_card(page: Path) -> bool:
    """Whether a file is a model card."""
    try:
        return _PARITY in page.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return False


def card(source: Trained, exported: Exported, form: Form, measured: str) -> str:
    """The card as Markdown.

    Args:
        source: the trained version.
        exported: the model.
        form: its input and outputs.
        measured: the section about its latency; may be empty.
    """
    with read(source.folder) as reader:
        run = summary(reader)
        settings = reader.resolved()["scenario"]
    spec, client, ort, compact = source.federation.spec, exported.client, exported.ort, exported.compact
    owner = "Global model" if client is None else f"Client {client}"
    whose = "the global model" if client is None else f"the model of client {client}"
    trained = f"trained with {source.meta['method']} on {spec.name} by {run.clients} simulated clients"
    blocks = [
        f"# {source.meta['name']}: {whose}",
        f"{source.model(client)} for {spec.classes} classes, {trained}; version {source.version}.",
        f"**{owner}: {exported.standing}.**" if exported.standing else "",
        "## Use",
        _use(form, spec.shape),
        f"`{ort.path.name}` is the same model in ONNX Runtime's own format. A reduced build of ONNX Runtime "
        f"that is configured with `--include_ops_by_config {ort.config.name}` can run it."
        if ort
        else "",
        "## Training",
        _training(source, run, settings),
        "Times, bytes and energy are modelled; the run's `plan.yaml` gives the source of every number.",
        "## Accuracy",
        _accuracies(exported, run.accuracy),
        ""
        if source.meta["evaluated_on"] == "test"
        else "All on training images held out for tuning, not on the test set.",
        _compact(compact, exported.size_bytes) if compact else "",
        _PARITY,
        "Of the float32 model that this file was converted from." if compact else "",
        _parity(exported.parity),
        measured,
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _use(form: Form, shape: tuple[int, ...]) -> str:
    size = " x ".join(map(str, ("batch", *shape)))
    layout = "float32, scaled and normalised by the caller" if form.raw_input else "uint8 pixels, 0 to 255"
    outputs = "`logits` and `probabilities`" if form.softmax else "`logits`"
    return f"Input `{form.input}`: {size}, {layout}.\nOutput: {outputs} (batch x classes)."


def _training(source: Trained, run: Summary, settings: Mapping[str, Any]) -> str:
    """How the run trained the model, by its summary and its plan."""
    fleet = settings["fleet"] if isinstance(settings["fleet"], str) else "defined in the scenario"
    return _table(
        ("run", source.meta["run_id"]),
        ("seed", str(source.meta["seed"])),
        ("partition", _component(settings["task"]["partition"])),
        ("fleet", fleet),
        ("method", _component(settings["method"])),
        ("rounds", str(settings["server"]["rounds"])),
        ("virtual time", show_seconds(run.virtual_s)),
        ("bytes down, up", f"{show_bytes(run.down_bytes)}, {show_bytes(run.up_bytes)}"),
        ("compute of all clients", show_flops(run.flops)),
        ("energy of all clients", energy(run.energy)),
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
    table = _table(
        ("size", show_bytes(size_bytes), show_bytes(compact.fp32_bytes)),
        ("accuracy", _percent(compact.accuracy), _percent(compact.fp32_accuracy)),
        ("latency", f"{compact.latency_ms:.3g} ms", f"{compact.fp32_latency_ms:.3g} ms"),
        head="| | this file | in float32 |\n|---|---|---|",
    )
    same = f"Same class as in float32: {_percent(compact.agreement)} of the samples."
    return f"## Precision\n\n{how}. {scope}\n\n{table}\n\n{same}"


def _parity(parity: Parity) -> str:
    return _table(
        ("samples", f"{parity.samples:,}"),
        ("largest error of a logit", f"{parity.max_error:.2g}"),
        ("same class as PyTorch", _percent(parity.agreement)),
        ("PyTorch's accuracy", _percent(parity.torch_accuracy)),
    )


def _table(*rows: Iterable[str], head: str = "| | |\n|---|---|") -> str:
    return "\n".join([head, *(f"| {' | '.join(row)} |" for row in rows)])


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


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


def results_file(model: Path) -> Path:
    """The file that keeps a model's measurements."""
    return model.with_suffix(".bench.json")


def read_card(model: Path) -> str:
    """The model card beside a model's file.

    Raises:
        UserError: there is none.
    """
    try:
        return model.with_suffix(".md").read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{model.name} has no model card beside it", where="--card", hint="edgefl export writes one"
        ) from error


def save(result: BenchResult) -> None:
    """Keeps what ``edgefl.export.bench`` measured, and shows it in the model's card.

    Raises:
        UserError: the model has no card.
    """
    model = Path(result.model)
    before, _, behind = read_card(model).partition(f"\n{_LATENCY}\n")
    _, heading, after = behind.partition("\n## ")
    machine = " ".join(filter(None, (platform.system(), platform.machine(), host.processor())))
    atomically(results_file(model), json.dumps({**document(result), "machine": machine}, indent=2).encode())
    section = latency_section(model, model.read_bytes())
    page = f"{before.rstrip()}\n\n{section}\n{heading.lstrip()}{after}"
    atomically(model.with_suffix(".md"), page.encode())


def latency_section(model: Path, content: bytes) -> str:
    """The card's latency section; empty if this very content was never measured.

    Args:
        model: the model's file.
        content: what it holds, or will hold as soon as its card is written.
    """
    try:
        result = json.loads(results_file(model).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    if result.get("sha256") != hashlib.sha256(content).hexdigest():
        return ""
    rows = [Measured(**row) for row in result["measured"]]
    batch = "one sample" if result["batch"] == 1 else f"{result['batch']:,} samples"
    how = f"Measured on {result['machine']}, {batch} per call, each row in a fresh process."
    table = _table(
        *([row.runtime, *(figure(row) for figure in FIGURES.values())] for row in rows),
        head=f"| runtime | {' | '.join(FIGURES)} |\n| --- |{' ---: |' * len(FIGURES)}",
    )
    return f"{_LATENCY}\n\n{how}\n\n{table}"
