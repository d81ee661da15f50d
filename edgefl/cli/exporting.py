"""Commands about models that leave a run: export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from edgefl.cli.app import AsJson, app, print_json, stderr, stdout
from edgefl.core.errors import UserError

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run's directory.")]
DataDir = Annotated[
    Path | None, typer.Option(help="Where datasets' files lie; where the run found them by default.")
]


@app.command()
def export(
    run: RunFolder,
    client: Annotated[int | None, typer.Option(help="A client's own model, by number.")] = None,
    everybody: Annotated[bool, typer.Option("--all", help="Every client's own model.")] = False,
    version: Annotated[str, typer.Option(help="last, best, or a saved version's number.")] = "last",
    int8: Annotated[
        bool, typer.Option("--int8", help="Quantise weights and activations, calibrated on training images.")
    ] = False,
    fp16: Annotated[bool, typer.Option("--fp16", help="Halve the weights' precision.")] = False,
    max_drop: Annotated[
        float, typer.Option(help="The most accuracy that --int8 and --fp16 may lose, such as 0.02.")
    ] = 0.02,
    raw_input: Annotated[
        bool, typer.Option("--raw-input", help="Leave scaling and normalising to the caller.")
    ] = False,
    softmax: Annotated[bool, typer.Option("--softmax", help="Add probabilities as a second output.")] = False,
    ort: Annotated[
        bool, typer.Option("--ort", help="Write ONNX Runtime's own format for reduced mobile builds too.")
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
    from edgefl.export import Form, SomeFailedError, Wanted
    from edgefl.export import export as export_run
    from edgefl.planning.learning import DataAccess

    if everybody and client is not None:
        raise UserError("--client and --all exclude each other", where="--client")
    if int8 and fp16:
        raise UserError("--int8 and --fp16 exclude each other", where="--int8")
    wanted = Wanted(
        client,
        everybody,
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
            found = export_run(run, wanted, access, out, lambda done, of: steps.show("models", done, of))
        except SomeFailedError as error:
            found, failed = list(error.done), error
    _print([one.plain() for one in found], as_json=as_json)
    if failed is not None:
        raise failed


def _print(found: list[dict[str, Any]], *, as_json: bool) -> None:
    """What was written; no table where nothing was."""
    from edgefl.report.exports import exports

    if as_json:
        print_json({"exports": found})
    elif found:
        console, folder = stdout(), Path(found[0]["path"]).parent
        console.print(exports(found))
        console.print(f"saved in {folder}, each with a model card (.md)", soft_wrap=True, markup=False)
