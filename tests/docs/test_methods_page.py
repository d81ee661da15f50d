"""docs/methods.md has tables of methods and combinations made of the code; ``--bless`` rewrites them."""

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from builders import build_method, build_net
from nightly import sampled
from pages import check, table

from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.planning.costs import Row
from edgefl.planning.learning import DataAccess, Learning, data_of, learn_from
from edgefl.planning.profile import profile
from edgefl.protocol import nbytes
from edgefl.runs.group import drafts
from edgefl.show.profile import when

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import method_runs
import method_tables

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "benchmarks" / "results" / "methods-cifar10.json"
NAMES = tuple(catalogue.entries("methods"))
ACCESS = DataAccess(need="nothing")
NET = build_net("cnn2", (3, 32, 32))


@cache
def draft(method: str):
    """The 2-layer CNN on 500 images of CIFAR-10, five epochs, batches of 50; 3,000 public images."""
    scenario = {
        "task": {"dataset": "cifar10", "clients": 94, "public": {"samples": 3000}},
        "model": "cnn2",
        "method": method,
        "local": {"epochs": 5, "batch_size": 50},
        "fleet": "home-lab",
    }
    (found,) = drafts(scenario)
    return found


def built(method: str) -> Learning:
    """The method on its net."""
    found = draft(method)
    return learn_from(
        found.scenario.learning, found.document, data_of(found.scenario, found.document, ACCESS)
    )


@pytest.fixture(scope="module")
def costs() -> dict[str, Sequence[Row]]:
    """Each method's exchanges, profiled."""
    return {name: profile(draft(name), access=ACCESS).exchanges for name in NAMES}


def first_line(name: str) -> str:
    """What a method is, as its file begins, without its name."""
    text = " ".join((catalogue.load("methods", name).__doc__ or "").split("\n\n")[0].split())
    _, colon, rest = text.partition(": ")
    return (rest if colon else text).rstrip(".")


def based(name: str) -> bool:
    """Whether a method is built on another."""
    return "base" in catalogue.load("methods", name).Params.model_fields


def ratio(number: float) -> str:
    """To three significant digits."""
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"


def carried(exchanges: Sequence[Row], way: str, whole: int) -> str:
    """The parts of payloads of one way and their size in models, by when they are sent."""
    whens: dict[str, list[str]] = {}
    for exchange in exchanges:
        parts: Mapping[str, int] = {part: size for part, size in exchange[way].items() if size}
        if parts:
            text = f"{', '.join(parts)} ({ratio(sum(parts.values()) / whole)})"
            whens.setdefault(when(exchange).removesuffix(", all clients"), []).append(text)
    every = whens.pop("every round", ["-"])
    return "; ".join((", ".join(every), *(f"{at}: {', '.join(texts)}" for at, texts in whens.items())))


def kept(learning: Learning, whole: int) -> str:
    """The parts of a client's state, and its size in models."""
    state = learning.methods[0].client(learning.nets[0].on_meta())
    parts = [part for part, tree in (state or {}).items() if nbytes({part: tree})]
    return f"{', '.join(parts)} ({ratio(nbytes(state) / whole)})" if parts else "-"


def methods_table() -> str:
    """What each method is, and whether it is built on another."""
    rows = ([f"`{name}`", first_line(name), "yes" if based(name) else "no"] for name in NAMES)
    return table(("method", "what it is", "`base`"), rows)


def costs_table(costs: Mapping[str, Sequence[Row]]) -> str:
    """What each method sends, keeps and computes, as multiples of FedAvg's."""
    (plain,) = costs["fedavg"]
    whole = sum(plain["down"].values())
    rows = []
    for name in NAMES:
        every = [exchange for exchange in costs[name] if when(exchange) == "every round"]
        rows.append(
            [
                f"`{name}`",
                carried(costs[name], "down", whole),
                carried(costs[name], "up", whole),
                kept(built(name), whole),
                ratio(sum(sum(each["flops"].values()) for each in every) / sum(plain["flops"].values())),
                ratio(sum(each["moved_bytes"] for each in every) / plain["moved_bytes"]),
                ratio(max(sum(each["peak"].values()) for each in every) / sum(plain["peak"].values())),
            ]
        )
    heads = ("method", "down", "up", "a client keeps", "FLOPs", "bytes moved", "peak memory")
    return table(heads, rows)


def is_refused(name: str, base: str) -> bool:
    """Whether a method cannot be built on a base."""
    try:
        method = build_method(name, NET, base={"name": base})
        server = method.initial(NET.on_meta())
        method.client(NET.on_meta())
        for exchange in method.exchanges:
            exchange.down(server, 0)
    except UserError:
        return True
    return False


def combinations_table() -> str:
    """On which others a method cannot be built."""
    rows = []
    for name in filter(based, NAMES):
        refused = ", ".join(f"`{base}`" for base in NAMES if is_refused(name, base))
        rows.append([f"`{name}`", refused or "-"])
    return table(("method", "not on"), rows)


@pytest.mark.nightly
@sampled(1, "name", ["methods", "costs", "combinations"])
def test_table_is_made_of_the_code(name, costs, request):
    """Each table between its marks is what the code gives."""
    made = {"methods": methods_table, "costs": lambda: costs_table(costs), "combinations": combinations_table}
    check("methods.md", name, made[name](), request.config)


@pytest.fixture(scope="module")
def results() -> method_runs.Results:
    """The benchmark's runs."""
    return method_runs.Results(method_runs.CIFAR10, RUNS)


def test_differences_are_those_of_the_file(results, request):
    """Published differences beside ours are made of the benchmark's file of runs."""
    check("methods.md", "claims", method_tables.claims_table(results), request.config)


def test_every_figure_is_beside_the_runs(results, request):
    """The Markdown file beside the runs is made of them."""
    text, file = method_tables.document(results), RUNS.with_suffix(".md")
    if request.config.getoption("--bless"):
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text
