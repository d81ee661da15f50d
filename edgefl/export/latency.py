"""Measured latency, kept beside a model's file and shown in its card; imports no torch."""

import hashlib
import json
import platform
from pathlib import Path

from edgefl.core import host
from edgefl.core.documents import document
from edgefl.core.errors import UserError
from edgefl.core.files import atomically
from edgefl.show.formats import markdown
from edgefl.show.onnx import FIGURES, BenchResult, MeasuredCalls
from edgefl.show.table import Column, Table

_LATENCY = "## Latency"


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
    atomically({results_file(model): json.dumps({**document(result), "machine": machine}, indent=2).encode()})
    section = latency_section(model, model.read_bytes())
    page = f"{before.rstrip()}\n\n{section}\n{heading.lstrip()}{after}"
    atomically({model.with_suffix(".md"): page.encode()})


def latency_section(model: Path, content: bytes) -> str:
    """The card's latency section; empty if this very content was never measured.

    ``content`` is what the file holds, or will hold as soon as its card is written.
    """
    try:
        result = json.loads(results_file(model).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    if result.get("sha256") != hashlib.sha256(content).hexdigest():
        return ""
    rows = [MeasuredCalls(**row) for row in result["measured"]]
    batch = "one sample" if result["batch"] == 1 else f"{result['batch']:,} samples"
    how = f"Measured on {result['machine']}, {batch} per call, each row in a fresh process."
    measured = markdown(Table([Column("runtime", "runtime"), *FIGURES], rows))
    return f"{_LATENCY}\n\n{how}\n\n{measured}".rstrip()
