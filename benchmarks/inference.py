"""How far a device's file is off when it predicts ONNX latency: networks that it was not fitted on, run here.

Takes a device that describes this machine, by name or as a file, such as ``edgefl calibrate`` writes. Exports
networks, runs them at batch 1 on one thread of ONNX Runtime in fresh processes, and prints predicted and
measured medians. Measured is CPU time, so that other programs on the machine do not count. Exits with 1 where
an error is above 30%.

    python benchmarks/inference.py DEVICE [--model NAME]... [--repeats N] [--batch N]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from edgefl.core import catalogue
from edgefl.data import Spec
from edgefl.export.bench import run_order
from edgefl.export.graph import Form, Served, to_onnx
from edgefl.export.model import Graph, read_model
from edgefl.export.predict import predictions
from edgefl.export.timing import Order
from edgefl.protocol import Predictor

# A calibration fits none of these: one has depthwise convolutions, one group normalisation.
HELD_OUT = ("mobilenet-v2", "spherefed-convnet")
MOST_ERROR = 0.3
SHAPE, CLASSES = (3, 32, 32), 10
SPEC = Spec("images", SHAPE, CLASSES, 1, 1, tuple(map(str, range(CLASSES))), (0.5,) * 3, (0.25,) * 3)
FORM = Form(raw_input=True)


def main() -> int:
    """Prints a line a network; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("device", help="a name, or a file that ends in .yaml")
    parser.add_argument("--model", action="append", help=f"a network; {' and '.join(HELD_OUT)} by default")
    parser.add_argument("--repeats", type=int, default=5, help="fresh processes each")
    parser.add_argument("--batch", type=int, default=1)
    asked = parser.parse_args()
    if asked.device.endswith(".yaml") and not Path(asked.device).is_file():
        parser.error(f"there is no file {asked.device}")
    errors = []
    with tempfile.TemporaryDirectory() as folder, named(asked.device, Path(folder)) as device:
        for name in asked.model or HELD_OUT:
            file = exported(name, Path(folder))
            row = predictions(Graph(read_model(file), asked.batch), [device], asked.batch)[0]
            if row["unknown"]:
                sys.exit(row["unknown"])
            seconds = measured(file, asked.batch, asked.repeats)
            errors.append(row["seconds"] / seconds - 1)
            print(
                f"{name:18} predicted {row['seconds'] * 1e3:8.3f} ms  measured {seconds * 1e3:8.3f} ms  "
                f"error {errors[-1]:+6.1%}  ({row['figures']})"
            )
    return int(any(abs(error) > MOST_ERROR for error in errors))


@contextmanager
def named(device: str, folder: Path) -> Iterator[str]:
    """A device's name; a file's is found while this is open."""
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
    net = module.build(module.Params(), SHAPE, CLASSES)
    file = folder / f"{name}.onnx"
    file.write_bytes(to_onnx(Served(Predictor(net.init(0), net.logits), SPEC, FORM), SHAPE, FORM, {}))
    return file


def measured(file: Path, batch: int, repeats: int) -> float:
    """Seconds a call: the median over processes of each one's median."""
    order = Order(str(file), batch=batch, budget_s=20.0, cpu=True)
    return median(median(run_order(order)["seconds"]) for _ in range(repeats))


if __name__ == "__main__":
    sys.exit(main())
