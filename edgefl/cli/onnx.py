"""Commands about ONNX files: export a run's models, measure a file, and classify images with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from edgefl.cli.answering import Force, Offline, command
from edgefl.core.errors import UserError
from edgefl.show.answers import Answer, Steps, quiet, several

if TYPE_CHECKING:
    from edgefl.runs.results import Runs
    from edgefl.show.onnx import Exported

RunFolder = Annotated["Runs", Argument(metavar="RUN", help="A run's directory."), Path]
Reference = Annotated[
    "Runs | None",
    Option(metavar="RUN", help="The run it was exported from, to compare with PyTorch."),
    Path | None,
]
_MODEL = Argument(metavar="MODEL.onnx", help="An ONNX file.")


@command("export runs/first --out model.onnx", "export runs/first --version best --int8")
def export(
    run: RunFolder,
    *,
    client: Annotated[int | None, Option(help="Export the own model of the client with this number.")] = None,
    all: Annotated[bool, Option("--all", help="Export every client's own model.")] = False,  # noqa: A002 - as the option
    version: Annotated[str | int, Option(help="last, best, or a saved version's number."), str] = "last",
    int8: Annotated[
        bool, Option("--int8", help="Quantise weights and activations, calibrated on training images.")
    ] = False,
    fp16: Annotated[bool, Option("--fp16", help="Store weights and activations in float16.")] = False,
    max_drop: Annotated[
        float, Option(help="The most accuracy that --int8 and --fp16 may lose, such as 0.02.")
    ] = 0.02,
    raw_input: Annotated[
        bool, Option("--raw-input", help="Leave scaling and normalising to the caller.")
    ] = False,
    softmax: Annotated[bool, Option("--softmax", help="Add probabilities as a second output.")] = False,
    out: Annotated[
        str | Path | None,
        Option(help="FILE.onnx, or a folder with --all; RUN/export/ by default."),
        Path | None,
    ] = None,
    force: Force = False,
    data_dir: Annotated[
        str | Path | None,
        Option(help="Folder of the dataset's files; by default, where the run found them."),
        Path | None,
    ] = None,
    offline: Offline = False,
    steps: Steps = quiet,
) -> Answer:
    """Write a run's model as verified ONNX, with a model card beside it."""
    from edgefl.export.build import ExportOptions
    from edgefl.export.make import SomeFailedError
    from edgefl.export.make import export as export_run
    from edgefl.export.model import ExportForm
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
        ExportForm(raw_input=raw_input, softmax=softmax),
        precision="int8" if int8 else "fp16" if fp16 else "fp32",
        max_drop=max_drop,
    )
    access = DataAccess(Path(data_dir) if data_dir else None, download=not offline)
    path = Path(out) if out else None
    try:
        return _exported(export_run(folder_of(run), options, access, path, steps, force=force))
    except SomeFailedError as error:
        error.answer = _exported(error.done)
        raise


def _exported(done: Sequence[Exported]) -> Answer:
    """What was written; no table where nothing was."""
    from edgefl.core.units import show_count
    from edgefl.show.onnx import exports

    if not done:
        return Answer("export of no model", {"exports": []})
    folder = done[0].path.parent
    lines = [f"saved in {folder}, each with a model card (.md)"]
    return Answer(f"export of {show_count(len(done), 'model')}", {"exports": done}, exports(done), lines)


@command("bench model.onnx", "bench model.onnx --device raspberry-pi-4b --predict-only")
def bench(
    model: Annotated[str | Path, _MODEL, Path],
    *,
    threads: Annotated[
        int | None, Option(help="Measure on 1 thread and on this many; all cores by default.", min=1)
    ] = None,
    batch: Annotated[int, Option(help="Samples per call.", min=1)] = 1,
    run: Reference = None,
    device: Annotated[
        str | Sequence[str] | None, Option(help="A device to predict for, or all."), list[str] | None
    ] = None,
    dtype: Annotated[
        str | None, Option(help="Number type on devices: fp32, fp16, bf16 or int8; by default the model's.")
    ] = None,
    runs: Annotated[int, Option(help="Timed calls in each measurement.", min=1)] = 300,
    budget: Annotated[
        float, Option(metavar="SECONDS", help="Stop a measurement after this time.", min=0.1)
    ] = 30.0,
    predict_only: Annotated[
        bool, Option("--predict-only", help="Measure nothing here; requires --device.")
    ] = False,
    card: Annotated[
        bool, Option("--card", help="Add the measurements to the model card beside the file.")
    ] = False,
    steps: Steps = quiet,
) -> Answer:
    """Measure a model here, compared with PyTorch, and predict it on other devices."""
    from edgefl.core.host import check_threads, cores
    from edgefl.export.bench import BenchOptions
    from edgefl.export.bench import bench as bench_model
    from edgefl.export.latency import read_card, save
    from edgefl.planning.fleets import dtype_of
    from edgefl.runs.results import folder_of
    from edgefl.show.onnx import bench as tables

    devices = list(map(str, several(device)))
    if predict_only and (card or not devices):
        raise UserError(
            "--predict-only and --card exclude each other" if card else "--predict-only needs --device NAME",
            where="--predict-only",
        )
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
    return Answer(f"bench of {path.name}", result, tables(result))


@command("infer model.onnx photos --top 3")
def infer(
    model: Annotated[Path, _MODEL],
    images: Annotated[list[Path], Argument(metavar="IMAGE", help="Images, or folders of them.")],
    top: Annotated[int, Option(help="How many classes to show.", min=1)] = 3,
) -> Answer:
    """Classify images: class names and probabilities."""
    from edgefl.export.infer import infer as infer_images
    from edgefl.show.onnx import inference

    found = infer_images(model, images, top)
    return Answer(f"inference with {model.name}", found, inference(found))
