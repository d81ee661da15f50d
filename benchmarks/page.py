"""A report page's size, and the seconds until it is there and until it answers.

    python benchmarks/page.py [PART]... [--scale SHARE] [--runs DIR] [--out FILE]

The runs are made up: their clock, jobs and energies are those of the null engine, through the store's writer,
and their accuracies a formula with noise. ``--runs`` keeps them, and uses those that are there. A part reads
the runs, makes their page, opens it in a headless Chromium and uses every switch of every plot, in view.
"""

import argparse
import datetime as dt
import io
import math
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from edgefl.cli import main as edgefl
from edgefl.core.host import processor
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs.describing import describe
from edgefl.runs.group import drafts
from edgefl.runs.run import RunInProgress
from edgefl.store.folders import is_run
from edgefl.store.writer import Store
from edgefl.trackers import Callbacks
from edgefl.world.needs import Evaluate, Feedback

POLICIES: tuple[dict[str, Any], ...] = (
    {"name": "sync"},
    {"name": "deadline", "quantile": 0.8},
    {"name": "overselect"},
    {"name": "fedbuff", "buffer": 5},
)
PARTICIPANTS = (4, 6, 8, 10, 12)
CLASSES = 10
MOST_BYTES, MOST_S, MOST_MS = 3_200_000, 10.0, 200.0


@dataclass(frozen=True)
class Part:
    """Runs of 20 clients on digits.

    Attributes:
        settings: how many different settings there are.
        seeds: how many runs there are of each.
        rounds: of a run.
        measured: whether accuracies of classes were measured too.
    """

    settings: int
    seeds: int
    rounds: int
    measured: bool = False

    @property
    def title(self) -> str:
        """What it is, in words."""
        seeds = f" ({self.settings} settings, {self.seeds} seeds)" if self.seeds > 1 else ""
        measured = ", accuracy by class measured" if self.measured else ""
        return f"{self.settings * self.seeds} runs x {self.rounds:,} rounds{seeds}{measured}"


PARTS = {
    "bytes": Part(10, 1, 200),
    "measured": Part(10, 1, 200, measured=True),
    "many": Part(20, 5, 1000),
}


class MadeUp(RunInProgress):
    """A run whose models are as accurate as a formula says."""

    measured = False

    def _evaluate(self, need: Evaluate) -> Feedback:
        self.flush()
        rounds, seed = self.plan.scenario.server.until.rounds, self.plan.scenario.seed
        drawn = np.random.default_rng([seed, need.version])
        known = 0.95 * (1 - math.exp(-6 * (need.round + 1) / rounds))
        row = {
            "version": need.version,
            "round": need.round,
            "t_s": need.t_s,
            "down_bytes": need.totals.down_bytes,
            "up_bytes": need.totals.up_bytes,
            **need.totals.energy._asdict(),
            "host_s": 0.0,
        }
        for model in ("global", "personal"):
            accuracy = float(np.clip(known + drawn.normal(0, 0.01), 0, 1))
            personal = {"spread": 0.05, "clients": 20, "untrained": 0} if model == "personal" else {}
            scores = {"model": model, "accuracy": accuracy, "loss": -math.log(max(accuracy, 1e-3))}
            self.store.add("evaluations", {**row, **scores, **personal})
        if self.measured:
            self._measure(need, np.clip(known + drawn.normal(0, 0.05, CLASSES), 0, 1).tolist())
        return Feedback()

    def _measure(self, need: Evaluate, accuracies: Sequence[float]) -> None:
        what = {"measure": "class-accuracy", "figure": "", "model": "global"}
        at = {"version": need.version, "round": need.round, **what}
        rows = [{**at, "label": str(label), "value": value} for label, value in enumerate(accuracies)]
        worst = {**at, "figure": "worst", "label": "", "value": min(accuracies)}
        self.store.add("measures", *rows, worst)


def make(part: Part, folder: Path, scale: float) -> None:
    """Makes the runs that are missing."""
    rounds = max(2, round(part.rounds * scale))
    combined = [(policy, count) for count in PARTICIPANTS for policy in POLICIES][: part.settings]
    for place, (policy, participants) in enumerate(combined):
        for seed in range(part.seeds):
            path = folder / f"{place * part.seeds + seed + 1:03}-made"
            if is_run(path):
                continue
            name = f"{policy['name']} {participants}/20"
            settings = {
                "name": name, "seed": seed, "server.rounds": rounds, "server.participants": participants,
                "server.policy": policy, "sweep": None, "evaluate.every": 1,
                "evaluate.models": ["global", "personal"], "local.optimizer.lr": 0.5,
            }  # fmt: skip
            if part.measured:
                settings["evaluate.measures"] = ["class-accuracy"]
            _make(path, settings, measured=part.measured)


def _make(path: Path, settings: dict[str, Any], *, measured: bool) -> None:
    (draft,) = drafts("quickstart", settings)
    planned = plan(draft, DataAccess(need="embedded"))
    with Store.planned(path) as store:
        describe(planned, store, "loop")
    store = Store.open(path)
    run = MadeUp(planned.plan, store, None, Callbacks())
    run.measured = measured
    run.to_end()
    store.close("done", host_wall_s=0.0)


# Uses the switches of a plot in turn, at least so often as is said: the milliseconds until it was drawn again
# and painted.
_USE = """
async ([id, least]) => {
  const figure = edgefl.state.figures.find((one) => one.plot.id === id);
  const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  figure.node.scrollIntoView({ block: "center" });
  for (let wait = 0; !figure.seen && wait < 500; wait++) await painted();
  const uses = {
    radio: (one) => [() => { if (!one.checked) one.click(); }],
    checkbox: (one) => [() => one.click()],
    range: (one) => [0.25, 0.5, 0.75, 1, 0].map((share) => () => {
      one.value = Math.round(share * one.max);
      one.dispatchEvent(new Event("input"));
    }),
    "select-one": (one) => [1, 2, 0].filter((at) => at < one.options.length).map((at) => () => {
      one.selectedIndex = at;
      one.dispatchEvent(new Event("change"));
    }),
  };
  const inputs = () => [...figure.switches.querySelectorAll("input, select")];
  const found = [];
  let before = -1;
  while (found.length < least && found.length > before) {
    before = found.length;
    for (let place = 0; place < inputs().length; place++) {
      for (let nth = 0; inputs()[place] && nth < uses[inputs()[place].type](inputs()[place]).length; nth++) {
        const one = inputs()[place];
        if (one.type === "radio" && one.checked) continue;
        await painted();
        const start = performance.now();
        uses[one.type](one)[nth]();
        await painted();
        found.push([one.name, performance.now() - start]);
      }
    }
  }
  return found;
}
"""
_USES = 20


@contextmanager
def browsing() -> Iterator[Page]:
    """A page of the system's Chromium."""
    path = os.environ.get("EDGEFL_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("no browser: install chromium, or name one in EDGEFL_BROWSER")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser.new_page(viewport={"width": 1280, "height": 900})
        finally:
            browser.close()


def opened(page: Page, file: Path) -> float:
    """Seconds until the page is there, with the plots in view drawn."""
    page.set_default_timeout(300_000)
    start = time.perf_counter()
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    return time.perf_counter() - start


def used(page: Page) -> dict[str, list[tuple[str, float]]]:
    """By plot, each use of a switch: its name, and the milliseconds until the plot was there again."""
    ids = page.evaluate("edgefl.state.figures.map((one) => one.plot.id)")
    return {one: page.evaluate(_USE, [one, _USES]) for one in ids}


def shown(part: Part, runs: Path, folder: Path) -> Iterator[str]:
    """What a part measured, line by line."""
    file, start, worked = folder / f"{runs.name}.html", time.perf_counter(), time.process_time()
    try:
        with redirect_stdout(io.StringIO()):
            edgefl(["report", str(runs), "--out", str(file), "--target", "0.9"])
    except SystemExit as ended:
        # It always exits; what it printed to stderr stays in view.
        if ended.code:
            raise
    report_s, cpu_s = time.perf_counter() - start, time.process_time() - worked
    size = file.stat().st_size
    with browsing() as page:
        load_s = opened(page, file)
        switches = used(page)
    yield part.title
    yield f"  page      {size / 1e6:8.2f} MB" + (
        "" if part.settings > 10 else f"  (< {MOST_BYTES / 1e6:.1f})"
    )
    both = report_s + load_s
    yield f"  report    {report_s:8.2f} s   of which {cpu_s:.2f} s of processor time"
    yield f"  to open   {load_s:8.2f} s   both {both:.2f} s  (< {MOST_S:.0f})"
    yield f"  a switch  {_spread([ms for uses in switches.values() for _, ms in uses])}  (< {MOST_MS:.0f})"
    for plot, uses in switches.items():
        if uses:
            slowest, _ = max(uses, key=lambda use: use[1])
            yield f"    {plot:14} {_spread([ms for _, ms in uses])}, {slowest.removeprefix(plot + '-')}"


def _spread(times: Sequence[float]) -> str:
    return (
        f"median {statistics.median(times):4.0f} ms  p95 {np.percentile(times, 95):4.0f}  "
        f"most {max(times):4.0f} of {len(times)}"
    )


def main() -> None:
    """Prints, and writes where ``--out`` says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--scale", type=float, default=1.0, help="so many times the rounds")
    parser.add_argument("--runs", type=Path, help="where the runs are, or are made and kept")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if unknown := set(given.part) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    # Other programs may share the machine.
    load = f"load {os.getloadavg()[0]:.1f}"
    machine = f"{processor()}, {os.cpu_count()} cores, {load}, Python {platform.python_version()}"
    lines = [f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, {machine}"]
    print(lines[0])
    with tempfile.TemporaryDirectory() as temporary:
        for name in given.part or PARTS:
            runs = (given.runs or Path(temporary)) / name
            make(PARTS[name], runs, given.scale)
            for line in shown(PARTS[name], runs, Path(temporary)):
                print(line, flush=True)
                lines.append(line)
    if given.out:
        given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
