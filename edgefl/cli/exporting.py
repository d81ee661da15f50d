"""The export command: a run's models as ONNX files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from edgefl.cli.app import AsJson, app, print_json, stderr, stdout
from edgefl.core.errors import UserError

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run's directory.")]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder of the dataset's files; by default, where the run found them.")
]


@app.command()
def export(
    run: RunFolder,
    client: Annotated[
        int | None, typer.Option(help="Number of the client whose own model to export.")
    ] = None,
    all_clients: Annotated[bool, typer.Option("--all", help="Export every client's own model.")] = False,
    version: Annotated[str, typer.Option(help="last, best, or a saved version's number.")] = "last",
    int8: Annotated[
        bool, typer.Option("--int8", help="Quantise weights and activations, calibrated on training images.")
    ] = False,
    fp16: Annotated[bool, typer.Option("--fp16", help="Store weights and activations in float16.")] = False,
    max_drop: Annotated[
        float, typer.Option(help="The most accuracy that --int8 and --fp16 may lose, such as 0.02.")
    ] = 0.02,
    raw_input: Annotated[
        bool, typer.Option("--raw-input", help="Leave scaling and normalising to the caller.")
    ] = False,
    softmax: Annotated[bool, typer.Option("--softmax", help="Add probabilities as a second output.")] = False,
    ort: Annotated[
        bool, typer.Option("--ort", help="Also write ONNX Runtime's own format, for reduced mobile builds.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="FILE.onnx, or a folder with --all; RUN/export/ by default.")
    ] = None,
    data_dir: DataDir = None,
    offline: Annotated[bool, typer.Option("--offline", help="Never download a dataset.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a run's model as verified ONNX, with a model card beside it."""
    from edgefl.cli.steps import Steps
    from edgefl.export.candidate import ExportOptions
    from edgefl.export.graph import Form
    from edgefl.export.make import SomeFailedError
    from edgefl.export.make import export as export_run
    from edgefl.planning.learning import DataAccess

    if all_clients and client is not None:
        raise UserError("--client and --all exclude each other", where="--client")
    if int8 and fp16:
        raise UserError("--int8 and --fp16 exclude each other", where="--int8")
    options = ExportOptions(
        client,
        all_clients,
        version,
        Form(raw_input=raw_input, softmax=softmax),
        precision="int8" if int8 else "fp16" if fp16 else "fp32",
        max_drop=max_drop,
        ort=ort,
    )
    access = DataAccess(data_dir, download=not offline)
    failed: SomeFailedError | None = None
    with Steps(stderr()) as steps:
        try:
            done = export_run(
                run, options, access, out, lambda done, total: steps.show("models", done, total)
            )
        except SomeFailedError as error:
            done, failed = list(error.done), error
    _print([one.plain() for one in done], as_json=as_json)
    if failed is not None:
        raise failed


def _print(exports: list[dict[str, Any]], *, as_json: bool) -> None:
    """Prints what was written; no table where nothing was."""
    from edgefl.report.exports import exports as tables

    if as_json:
        print_json({"exports": exports})
    elif exports:
        console, folder = stdout(), Path(exports[0]["path"]).parent
        console.print(tables(exports))
        console.print(f"saved in {folder}, each with a model card (.md)", soft_wrap=True, markup=False)
