"""The error of a device file's ONNX latency predictions, on networks that it was not fitted to.

Takes a device that describes this machine, by name or as a file such as ``edgefl calibrate`` writes. Exports
networks, runs them on one thread of ONNX Runtime in fresh processes, and prints predicted and measured
medians. Measured times are CPU time, which excludes other programs. Exits with 1 if an error is above 30%.

    python benchmarks/inference.py DEVICE [--model NAME]... [--repeats N] [--batch N]
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from edgefl.core import catalogue, fresh
from edgefl.data import Spec
from edgefl.export.bench import predictions
from edgefl.export.graph import Served, to_onnx
from edgefl.export.model import ExportForm, Graph, read_model
from edgefl.export.timing import Measurement, time_onnx
from edgefl.protocol import Predictor

# A calibration fits none of these: one has depthwise convolutions, one group normalisation.
HELD_OUT = ("mobilenet-v2", "spherefed-convnet")
MOST_ERROR = 0.3
SHAPE, CLASSES = (3, 32, 32), 10
SPEC = Spec("images", SHAPE, 1, 1, tuple(map(str, range(CLASSES))), (0.5,) * 3, (0.25,) * 3)
FORM = ExportForm(raw_input=True)


def main() -> int:
    """Prints a line for each network; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("device", help="a name, or a .yaml file")
    parser.add_argument(
        "--model", action="append", help=f"a network (repeatable); default: {' and '.join(HELD_OUT)}"
    )
    parser.add_argument("--repeats", type=int, default=5, help="fresh processes for each network")
    parser.add_argument("--batch", type=int, default=1)
    options = parser.parse_args()
    if options.device.endswith(".yaml") and not Path(options.device).is_file():
        parser.error(f"no such file: {options.device}")
    errors = []
    with tempfile.TemporaryDirectory() as folder, named(options.device, Path(folder)) as device:
        for name in options.model or HELD_OUT:
            file = exported(name, Path(folder))
            row = predictions(Graph(read_model(file), options.batch), [device], options.batch)[0]
            if row.price is None:
                sys.exit(row.unknown)
            seconds = measured(file, options.batch, options.repeats)
            errors.append(row.price.seconds / seconds - 1)
            print(
                f"{name:18} predicted {row.price.seconds * 1e3:8.3f} ms  measured {seconds * 1e3:8.3f} ms  "
                f"error {errors[-1]:+6.1%}  ({row.price.figures})"
            )
    return int(any(abs(error) > MOST_ERROR for error in errors))


@contextmanager
def named(device: str, folder: Path) -> Iterator[str]:
    """A device's name; that of a file is known to the catalogue while this is open."""
    if not device.endswith(".yaml"):
        yield device
        return
    (folder / "devices").mkdir()
    shutil.copy(device, folder / "devices" / "here.yaml")
    before = os.environ.get("EDGEFL_PATH")
    os.environ["EDGEFL_PATH"] = str(folder)
    try:
        yield "here"
    finally:
        if before is None:
            del os.environ["EDGEFL_PATH"]
        else:
            os.environ["EDGEFL_PATH"] = before


def exported(name: str, folder: Path) -> Path:
    """A network as an ONNX file, without preprocessing."""
    module = catalogue.load("models", name)
    net = module.Params().build(SHAPE, CLASSES)
    file = folder / f"{name}.onnx"
    file.write_bytes(to_onnx(Served(Predictor(net.init(0), net.logits), SPEC, FORM), SHAPE, FORM, {}))
    return file


def measured(file: Path, batch: int, repeats: int) -> float:
    """Seconds a call: the median over processes of each one's median."""
    measurement = Measurement(str(file), batch=batch, budget_s=20.0, cpu=True)
    return median(fresh.call(time_onnx, measurement).p50_s for _ in range(repeats))


if __name__ == "__main__":
    sys.exit(main())
