"""Commands about exported models: how fast they are, and what they say of an image."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgefl.cli.app import AsJson, app, print_json, stderr, stdout
from edgefl.core.errors import UserError

ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="An ONNX file.")]


Threads = Annotated[int | None, typer.Option(help="Measure on so many, too; all cores by default.", min=1)]
Batch = Annotated[int, typer.Option(help="Samples a call.", min=1)]
OfRun = Annotated[
    Path | None, typer.Option("--run", metavar="RUN", help="The run it is of, to compare with PyTorch.")
]
Devices = Annotated[list[str] | None, typer.Option(help="A device to predict for, or all.")]
DeviceType = Annotated[
    str | None, typer.Option(help="fp32, fp16, bf16 or int8 on devices; the model's own by default.")
]
Calls = Annotated[int, typer.Option(help="Calls that count in each measurement.", min=1)]
Budget = Annotated[float, typer.Option(metavar="SECONDS", help="When to end a measurement earlier.", min=0.1)]
PredictOnly = Annotated[bool, typer.Option("--predict-only", help="Measure nothing here; with --device.")]
IntoCard = Annotated[
    bool, typer.Option("--card", help="Put what was measured into the model card beside the file.")
]


@app.command()
def bench(
    model: ModelArgument,
    threads: Threads = None,
    batch: Batch = 1,
    run: OfRun = None,
    device: Devices = None,
    dtype: DeviceType = None,
    runs: Calls = 300,
    budget: Budget = 30.0,
    predict_only: PredictOnly = False,
    card: IntoCard = False,
    as_json: AsJson = False,
) -> None:
    """Measure a model here, beside PyTorch, and predict it on other devices."""
    from edgefl.cli.steps import Steps
    from edgefl.export.bench import Wish, cores
    from edgefl.export.bench import bench as bench_model
    from edgefl.export.latency import card_of, keep
    from edgefl.planning.fleets import dtype_of
    from edgefl.report import latency

    if predict_only and (card or not device):
        raise UserError(
            "--predict-only leaves nothing for the card" if card else "--predict-only needs --device NAME",
            where="--predict-only",
        )
    if card:
        # Before the measurements, which take their time.
        card_of(model)
    most = threads or cores()
    wish = Wish(
        threads=() if predict_only else sorted({1, most}),
        batch=batch,
        runs=runs,
        budget_s=budget,
        devices=tuple(device or ()),
        dtype=dtype_of(dtype),
        run=run,
    )
    with Steps(stderr()) as steps:
        found = bench_model(model, wish, tell=steps.show)
    if card:
        keep(found)
    if as_json:
        print_json(found)
    else:
        stdout().print(latency.bench(found))


@app.command()
def infer(
    model: ModelArgument,
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE...", help="PNG or JPEG files.")],
    top: Annotated[int, typer.Option(help="How many classes to show.", min=1)] = 3,
    as_json: AsJson = False,
) -> None:
    """Say what a model sees in images: class names and probabilities."""
    from edgefl.export.infer import infer as infer_images
    from edgefl.report.inference import inference

    found = infer_images(model, images, top)
    if as_json:
        print_json(found)
    else:
        stdout().print(inference(found))
