"""Commands about ONNX files: export a run's models, measure a file, and classify images with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgefl.cli.answering import answered
from edgefl.cli.app import app, examples
from edgefl.cli.console import print_json, stdout
from edgefl.cli.options import AsJson, Offline

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="An ONNX file.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run's directory.")]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder of the dataset's files; by default, where the run found them.")
]
MaxDrop = Annotated[
    float, typer.Option(help="The most accuracy that --int8 and --fp16 may lose, such as 0.02.")
]
Out = Annotated[Path | None, typer.Option(help="FILE.onnx, or a folder with --all; RUN/export/ by default.")]
Threads = Annotated[
    int | None, typer.Option(help="Measure on 1 thread and on this many; all cores by default.")
]
Reference = Annotated[
    Path | None, typer.Option(metavar="RUN", help="The run it was exported from, to compare with PyTorch.")
]


@app.command(
    epilog=examples(
        "export runs/first --out model.onnx",
        "export runs/first --version best --int8",
    )
)
def export(
    run: RunFolder,
    client: Annotated[
        int | None, typer.Option(help="Export the own model of the client with this number.")
    ] = None,
    all_clients: Annotated[bool, typer.Option("--all", help="Export every client's own model.")] = False,
    version: Annotated[str, typer.Option(help="last, best, or a saved version's number.")] = "last",
    int8: Annotated[
        bool, typer.Option("--int8", help="Quantise weights and activations, calibrated on training images.")
    ] = False,
    fp16: Annotated[bool, typer.Option("--fp16", help="Store weights and activations in float16.")] = False,
    max_drop: MaxDrop = 0.02,
    raw_input: Annotated[
        bool, typer.Option("--raw-input", help="Leave scaling and normalising to the caller.")
    ] = False,
    softmax: Annotated[bool, typer.Option("--softmax", help="Add probabilities as a second output.")] = False,
    out: Out = None,
    data_dir: DataDir = None,
    offline: Offline = False,
    as_json: AsJson = False,
) -> None:
    """Write a run's model as verified ONNX, with a model card beside it."""
    from edgefl.api import export as ask

    answered(
        ask,
        run,
        client=client,
        all=all_clients,
        version=version,
        int8=int8,
        fp16=fp16,
        max_drop=max_drop,
        raw_input=raw_input,
        softmax=softmax,
        out=out,
        data_dir=data_dir,
        offline=offline,
        as_json=as_json,
    )


@app.command(
    epilog=examples(
        "bench model.onnx",
        "bench model.onnx --device raspberry-pi-4b --predict-only",
    )
)
def bench(
    model: ModelFile,
    threads: Threads = None,
    batch: Annotated[int, typer.Option(help="Samples per call.")] = 1,
    run: Reference = None,
    device: Annotated[list[str] | None, typer.Option(help="A device to predict for, or all.")] = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="Number type on devices: fp32, fp16, bf16 or int8; by default the model's."),
    ] = None,
    runs: Annotated[int, typer.Option(help="Timed calls in each measurement.")] = 300,
    budget: Annotated[
        float, typer.Option(metavar="SECONDS", help="Stop a measurement after this time.")
    ] = 30.0,
    predict_only: Annotated[
        bool, typer.Option("--predict-only", help="Measure nothing here; requires --device.")
    ] = False,
    card: Annotated[
        bool, typer.Option("--card", help="Add the measurements to the model card beside the file.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure a model here, compared with PyTorch, and predict it on other devices."""
    from edgefl.api import bench as ask

    answered(
        ask,
        model,
        threads=threads,
        batch=batch,
        run=run,
        device=device,
        dtype=dtype,
        runs=runs,
        budget=budget,
        predict_only=predict_only,
        card=card,
        as_json=as_json,
    )


@app.command(
    epilog=examples(
        "infer model.onnx digit.png --top 3",
    )
)
def infer(
    model: ModelFile,
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE", help="PNG or JPEG files.")],
    top: Annotated[int, typer.Option(help="How many classes to show.", min=1)] = 3,
    as_json: AsJson = False,
) -> None:
    """Classify images: class names and probabilities."""
    from edgefl.export.infer import infer as infer_images
    from edgefl.report.inference import inference

    result = infer_images(model, images, top)
    if as_json:
        print_json(result)
    else:
        stdout().print(inference(result))
