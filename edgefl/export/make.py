"""From a run to verified ONNX files: build, verify, compact, mobile, write.

Each stage takes a ``Candidate`` and returns it with its own part filled in, or raises; only the last one
touches the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from edgefl.core.errors import EdgeflError, UserError
from edgefl.export.build import build
from edgefl.export.candidate import FP16, ExportOptions
from edgefl.export.compact import compact
from edgefl.export.graph import ExportError
from edgefl.export.mobile import mobile
from edgefl.export.trained import trained
from edgefl.export.verify import verify
from edgefl.export.write import target, write
from edgefl.planning.learning import DataAccess
from edgefl.report.exports import Exported


class SomeFailedError(ExportError):
    """Some of many models failed a check; the others were written.

    Attributes:
        done: the models written.
        failed: the errors of the others.
    """

    def __init__(self, done: Sequence[Exported], failed: Sequence[ExportError]) -> None:
        total = len(done) + len(failed)
        reasons = "".join(f"\n  {error.where}: {error.what}" for error in failed)
        super().__init__(
            f"{len(failed)} of {total} models failed their checks and were not written:{reasons}",
            hint=failed[0].hint,
        )
        self.done, self.failed = tuple(done), tuple(failed)


Progress = Callable[[str, int, int], None]


def export(
    folder: Path,
    options: ExportOptions,
    access: DataAccess,
    out: Path | None = None,
    progress: Progress = lambda label, done, total: None,  # noqa: ARG005 - a name for each
) -> list[Exported]:
    """Exports models of a run; each is verified before its file is written.

    Args:
        folder: the run's directory.
        options: what to export.
        access: how to get at its dataset.
        out: a file, or a folder if all clients are exported; ``export/`` in the run by default.
        progress: called with ("models", models done, models in all).

    Raises:
        UserError: something that was asked for does not exist, or the target cannot be written.
        ExportError: a model fails a check; its file is not written.
        SomeFailedError: some of many models fail; the others' files are written.
    """
    _check(options)
    source = trained(folder, access, options.version)
    clients: Sequence[int | None] = [options.client]
    if options.all_clients:
        clients = range(source.federation.clients)
    else:
        # An unknown client is an error before any folder is made.
        source.predictor(options.client)
    paths = [target(source, client, options, out) for client in clients]
    done: list[Exported] = []
    failed: list[ExportError] = []
    for place, (client, path) in enumerate(zip(clients, paths, strict=True)):
        progress("models", place, len(clients))
        try:
            done.append(write(mobile(compact(verify(build(source, client, options, path))))))
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


def _check(options: ExportOptions) -> None:
    """Refuses options that make no sense for any run.

    Raises:
        UserError: naming the option.
    """
    if not 0 <= options.max_drop <= 1:
        raise UserError(
            f"--max-drop must be between 0 and 1, not {options.max_drop:g}",
            where="--max-drop",
            hint="0.02 allows two percentage points",
        )
    if options.ort and options.precision == FP16:
        # Without float16 kernels it would keep float32 weights, and be larger than before.
        raise UserError(
            "the ORT format is optimised for this machine's processor, which turns float16 back into float32",
            where="--ort",
            hint="use --int8 --ort, --ort alone, or the ONNX file of --fp16",
        )
