"""What ``edgefl check`` says of some 200 mistakes, one for each key of a scenario and of the files it names.

    PYTHONPATH=CHECKOUT python benchmarks/mistakes.py > one.json
    python benchmarks/mistakes.py --before one.json > table.md

Every key is misspelt, or its value is unknown, of another type or out of range; other files are no YAML, or
too much of it. The exit status is 1 if a mistake is not refused with status 2, or with a traceback.
"""

import argparse
import io
import json
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from copy import deepcopy
from pathlib import Path
from typing import Any

import edgefl
from edgefl.cli import main

SOURCED = {"status": "measured", "source": "a bench"}


def number(value: Any, **bounds: Any) -> dict[str, Any]:
    """A number with its source."""
    return {"value": value, **bounds, **SOURCED}


FILES: dict[str, Any] = {
    "mine.yaml": {
        "task": {
            "dataset": "digits",
            "partition": {"name": "dirichlet", "alpha": 0.5},
            "clients": 8,
            "augment": "none",
            "public": {"samples": 100},
        },
        "model": {"name": "mlp", "hidden": [32], "head_bias": True},
        "method": {"name": "fedprox", "mu": 0.1},
        "local": {
            "epochs": {"fit": "30 s", "most": 5, "least": 1},
            "batch_size": 16,
            "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9, "nesterov": True},
        },
        "fleet": "own",
        "server": {
            "policy": {"name": "deadline", "quantile": 0.8, "late": "drop"},
            "selector": {"name": "power-of-choice", "factor": 2},
            "participants": 4,
            "uplink": "1 Gbit/s",
            "until": {"rounds": 2, "time": "1 h", "bytes": "1 GB", "energy": "5 kJ", "accuracy": 0.9},
        },
        "evaluate": {
            "every": 1,
            "models": ["global", "personal"],
            "target": 0.8,
            "holdout": 0.2,
            "measures": [{"name": "gradient-diversity"}],
        },
        "wire": {"up": {"name": "topk", "share": 0.1}, "down": "fp16"},
        "engine": {"name": "loop"},
        "checkpoint": {"minutes": 5},
        "sweep": {"seed": [0, 1]},
    },
    "profiles/own.yaml": {
        "members": [{"device": "own", "share": 2, "link": "own", "dtype": "fp32", "cell": "home"}],
        "cells": {"home": {"down": number("100 Mbit/s"), "up": number("40 Mbit/s"), "clients": 4}},
        "jitter": {"name": "lognormal", "sigma": 0.2},
        "availability": {"name": "diurnal", "mean": 0.3, "correlation": "1 h", "zones": [0, 8]},
        "speed": [{"name": "load", "share": 0.2, "length": "5 min"}],
        "carbon": {"regions": {"DE": {"share": 1}}, "server": {"power": number("200 W"), "region": "DE"}},
        "failures": {"crash": 0.1, "corrupt": 0.1, "retries": 2, "timeout": "1 h"},
    },
    "profiles/links/own.yaml": {
        "title": "Mine",
        "down": number("25 Mbit/s", low="20 Mbit/s", high="30 Mbit/s"),
        "up": number("10 Mbit/s"),
        "latency": number("30 ms"),
        "radio": number({"base": "0.5 W", "up_w_per_mbps": 0.01, "tail": "1.1 W", "tail_time": "2 s"}),
    },
    "devices/own.yaml": {
        "title": "Mine",
        "category": "phone",
        "kind": "roofline",
        "peak": {"fp32": number("50 GFLOP/s")},
        "efficiency": {kind: number(0.4) for kind in ("dense", "depthwise", "elementwise")},
        "memory_bandwidth": number("10 GB/s"),
        "launch_overhead": number("5 us"),
        "memory": number("16 GB"),
        "reserved_memory": number("1 GB"),
        "power": {"idle": number("6 W"), "active": number("46 W")},
        "battery": {"capacity": number("61 Wh"), "cut_off": number(0.2)},
        "throttling": {
            "after": number("60 s"),
            "over": number("30 s"),
            "to": number(0.5),
            "recovery": number("120 s"),
        },
        "training": {"supports": "everything", "source": "it runs PyTorch"},
    },
}
SETTINGS = (
    *("method={name: fedcka, mu: lots}", "method={name: spherefed, calibrate: onec}", "lr=1", "scale=small"),
    *("method={name: scaffold, optoin: II}", "server.policy={name: fedbuff, staleness: {shape: round}}"),
    *("server.selector={name: oort, explore: 7}", "task.partition={name: shards, shards_per_client: 0}"),
    *("seed", "a=[1", "seed=.nan", "engine={name: processes, inner: lopo}", "seed=2026-11-27"),
    *("tsak.clients=3", "sweep.seed=3", "local.epochs=1e400", "method={name: ktpfl, rho: -1}"),
)
TEXTS = (
    "a: " + "[" * 10_000, "a0: &a0 [x]\n"
    + "\n".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 10}]" for n in range(1, 10)),
    "a: &a [*a]", "x" * 20_000_000,
    "seed: 99999999999999999999", "seed: 1\nseed: 2", "- a", "", "task:\n\tclients: 2",
    "\ufeffa: b: c", "a: 1\n---\na: 2", "a: {b: 2", "a: !!python/name:os", "[a]: 2", "a: \0",
)  # fmt: skip


def paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of all values in plain data, but of the statuses and sources of all numbers but one."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        if key not in SOURCED or above[:1] == ("down",):
            yield (*above, key)
        yield from paths(below, (*above, key))


def wrong(data: dict[str, Any], path: tuple[Any, ...]) -> tuple[dict[str, Any], str]:
    """The data with one mistake, and what it is."""
    found, dotted = deepcopy(data), ".".join(map(str, path))
    above = found
    for key in path[:-1]:
        above = above[key]
    key, chance = path[-1], zlib.crc32(dotted.encode())
    if isinstance(above, dict) and (chance % 3 == 0 or key in {"public", "until", "carbon"}):
        typo = f"{key[:-2]}{key[-1]}{key[-2]}" if key[-1] != key[-2] else f"{key}x"
        pairs = [(typo if each == key else each, value) for each, value in above.items()]
        above.clear()
        above.update(pairs)
        return found, f"`{dotted}` as `{typo}`"
    old = above[key]
    amount = isinstance(old, str) and old[:1].isdigit()
    if isinstance(old, str) and not amount:
        new: Any = 7 if chance % 2 else f"{old[:-2]}{old[-1]}{old[-2]}"
    elif isinstance(old, bool | dict | list):
        new = "lots" if chance % 2 else 7
    elif amount:
        new = f"-{old}" if chance % 2 else f"{old.split()[0]} parsec"
    else:
        new = "lots" if chance % 2 or "seed" in path else -1
    above[key] = new
    return found, f"`{dotted}` = `{json.dumps(new)}`"


def mistakes() -> Iterator[tuple[str, Mapping[str, str], list[str]]]:
    """Each by its label: the files that differ, and what follows ``edgefl check mine.yaml``."""
    for name, data in FILES.items():
        for path in paths(data):
            found, label = wrong(data, path)
            yield f"{name}: {label}", {name: json.dumps(found, indent=1)}, []
    for setting in SETTINGS:
        yield f"`--set {setting}`", {}, ["--set", setting]
    for text in TEXTS:
        yield f"mine.yaml is `{json.dumps(text[:24])}`, {len(text):,} characters", {"mine.yaml": text}, []


def said(files: Mapping[str, str], arguments: list[str]) -> tuple[int, str]:
    """The exit status of a check, and what it says, in one line."""
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    err = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(err):
        try:
            main(["check", "mine.yaml", *arguments])
            status = 0
        except SystemExit as ended:
            status = int(ended.code or 0)
    told = [line.strip() for line in err.getvalue().splitlines() if line.strip()]
    parts = (line.removeprefix("where: ").removeprefix("hint:  ") for line in told)
    text = "; ".join(parts).removeprefix("error: ").replace(f"{Path.cwd()}/", "")
    return status, text.replace("|", "\\|")[:300]


def run() -> int:
    """Prints what is said as JSON, or beside what was said before."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path)
    before = parser.parse_args().before
    known = json.loads(before.read_text(encoding="utf-8")) if before else {}
    folder = Path(tempfile.mkdtemp())
    os.environ["EDGEFL_PATH"] = str(folder)
    os.chdir(folder)
    whole = {name: json.dumps(data, indent=1) for name, data in FILES.items()}
    for name in FILES:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
    if (whole_said := said(whole, []))[0]:
        sys.exit(f"without a mistake: {whole_said[1]}")
    found, failed, slowest = {}, 0, (0.0, "")
    for label, files, arguments in mistakes():
        begun = time.process_time()
        status, found[label] = said({**whole, **files}, arguments)
        slowest = max(slowest, (time.process_time() - begun, label))
        if status != 2 or "Traceback" in found[label]:
            failed = 1
            print(f"status {status}: {label}: {found[label]}", file=sys.stderr)
    print(f"slowest: {slowest[0]:.1f} s of one CPU, {slowest[1]}", file=sys.stderr)
    if not before:
        print(json.dumps(found, indent=1, ensure_ascii=False))
        return failed
    same = sum(known.get(label) == text for label, text in found.items())
    print(f"{len(found)} mistakes, {same} messages the same.\n\n| mistake | before | after |\n|---|---|---|")
    for label, text in found.items():
        print(f"| {label} | {known.get(label, '')} | {'the same' if known.get(label) == text else text} |")
    return failed


if __name__ == "__main__":
    print(f"edgefl of {Path(edgefl.__file__).parent.parent}", file=sys.stderr)
    sys.exit(run())
