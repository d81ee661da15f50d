"""The error of a calibrated device's predictions on networks and methods that the fit never saw.

Calibrates this machine several times and prints the medians over the calibrations: for each network, measured
time, predicted time and error; for each method, its step over FedAvg's on the same network.

    python benchmarks/calibration.py [--repeats N] [--threads N] [--out FILE]
"""

import argparse
import datetime as dt
import tempfile
from importlib.metadata import version
from pathlib import Path
from statistics import median

from edgefl.calibrate import Calibration, calibrate
from edgefl.calibrate.record import this_machine
from edgefl.calibrate.workloads import HELD_OUT
from edgefl.show.validation import MethodPrediction, Prediction

HELD_TO = 0.25
METHODS_HELD_TO = 0.2


def main() -> None:
    """Prints a table for training, one for methods and one for inference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = [
            calibrate(f"bench-{nth}", out=Path(folder) / f"bench-{nth}.yaml", threads=options.threads)
            for nth in range(options.repeats)
        ]
    text = "\n".join(
        [
            *_head(options, found),
            *_table("steps", [one.steps for one in found]),
            *_methods([one.methods for one in found]),
            *_table("inference", [one.inference for one in found]),
            *_numbers(found),
        ]
    )
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


def _head(options: argparse.Namespace, found: list[Calibration]) -> list[str]:
    machine = this_machine()
    took = median(one.took_s for one in found)
    libraries = ", ".join(f"{name} {version(name)}" for name in ("torch", "onnxruntime"))
    today = dt.datetime.now(dt.UTC).date().isoformat()
    return [
        f"{today}, {machine.title}, {libraries}, {options.threads} thread(s)",
        f"{options.repeats} calibrations, {took:.0f} s each; medians over them",
        *sorted({f"note: {note}" for one in found for note in one.notes}),
    ]


def _table(title: str, found: list[list[Prediction]]) -> list[str]:
    lines = [
        "",
        f"{title:30} {'':8} {'measured':>10} {'predicted':>10} {'error':>6}  errors of each calibration",
    ]
    for rows in zip(*found, strict=True):
        measured = median(row.measured_s for row in rows)
        predicted = median(row.predicted_s for row in rows)
        error = median(row.error for row in rows)
        each = " ".join(f"{row.error:+.0%}" for row in rows)
        verdict = ""
        if title == "steps" and rows[0].use == HELD_OUT:
            verdict = f"  within {HELD_TO:.0%}: {'yes' if abs(error) <= HELD_TO else 'NO'}"
        lines.append(
            f"{rows[0].network:30} {rows[0].use:8} {measured * 1e3:7.3f} ms {predicted * 1e3:7.3f} ms "
            f"{error:+6.1%}  {each}{verdict}"
        )
    return lines


def _methods(found: list[list[MethodPrediction]]) -> list[str]:
    head = f"{'over FedAvg':30} {'':20} {'measured':>10} {'predicted':>10} {'error':>6}"
    lines = ["", f"{head}  errors of each calibration"]
    for rows in zip(*found, strict=True):
        measured, predicted, error = (
            median(getattr(row, name) for row in rows) for name in ("measured", "predicted", "error")
        )
        each = " ".join(f"{row.error:+.0%}" for row in rows)
        network, method = rows[0].network, rows[0].method
        verdict = f"  within {METHODS_HELD_TO:.0%}: {'yes' if abs(error) <= METHODS_HELD_TO else 'NO'}"
        lines.append(
            f"{network:30} {method:20} {measured:10.2f} {predicted:10.2f} {error:+6.1%}  {each}"
            f"{verdict if method != 'fedavg' else ''}"
        )
    return lines


def _numbers(found: list[Calibration]) -> list[str]:
    """The fitted numbers of each calibration, which show how well they repeat."""
    lines = ["", "numbers of each calibration"]
    data = [one.numbers for one in found]
    for title, read in (
        ("peak", lambda one: one["peak"]["fp32"]),
        ("efficiency, dense", lambda one: one["efficiency"]["dense"]),
        ("efficiency, depthwise", lambda one: one["efficiency"]["depthwise"]),
        ("efficiency, elementwise", lambda one: one["efficiency"]["elementwise"]),
        ("half side", lambda one: one["half_side"]),
        ("memory bandwidth", lambda one: one["memory_bandwidth"]),
        ("launch overhead", lambda one: one["launch_overhead"]),
        ("backward overhead", lambda one: one["backward_overhead"]),
    ):
        lines.append(f"  {title:24} {', '.join(str(read(one)['value']) for one in data)}")
    return lines


if __name__ == "__main__":
    main()
