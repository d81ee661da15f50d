"""From measurements to figures, predictions, and the model card."""

import json
from dataclasses import replace

import pytest
from commands import run_command, shown
from graphs import floats, graph_of, write
from test_bench_kernels import QUANTISED, QUANTISED_WEIGHTS

from edgefl.core.documents import document
from edgefl.core.errors import UserError
from edgefl.export.bench import BenchOptions, bench, predictions
from edgefl.export.latency import latency_section, results_file, save
from edgefl.export.timing import TimedCalls, measured, profile, time_torch
from edgefl.show.onnx import OperatorTime
from edgefl.show.onnx import bench as tables

GEMM = [("Gemm", ["x", "w"], ["y"])]


def assumed(**numbers):
    """Figures of a device file."""
    return "".join(
        f"{name}: {{value: {value}, status: assumed, source: test}}\n" for name, value in numbers.items()
    )


def under(name, text):
    """A key of a device file."""
    return f"{name}:\n" + "".join(f"  {line}\n" for line in text.splitlines())


INT8 = {"int8": "4 GFLOP/s"}
# Twice as efficient, and 1 us a kernel.
RUNTIME = under("efficiency", assumed(dense=1, depthwise=1, elementwise=1)) + assumed(launch_overhead="1 us")


def device_file(*, peak=(("fp32", "1 GFLOP/s"),), launch="1 ms", power=(), more="", inference=""):
    """1 GFLOP/s in fp32, 4 in int8; 1 GB/s; 1 ms a kernel."""
    return (
        "title: A board\ncategory: sbc\n"
        + under("peak", assumed(**dict(peak)))
        + under("efficiency", assumed(dense=0.5, depthwise=0.5, elementwise=1))
        + assumed(memory_bandwidth="1 GB/s", launch_overhead=launch, memory="1 GB", reserved_memory="100 MB")
        + under("power", assumed(idle="1 W", active="5 W", **dict(power)))
        + more
        + (under("inference", f"runtime: ort 9\n{inference}") if inference else "")
    )


@pytest.fixture
def boards(tmp_path, monkeypatch):
    """Devices, with and without an inference runtime, and int8."""
    (tmp_path / "devices").mkdir()
    texts = {
        "plain": device_file(),
        "served": device_file(inference=RUNTIME),
        "wide": device_file(peak={"fp32": "1 GFLOP/s", **INT8}, inference=RUNTIME),
        "narrow": device_file(peak=INT8, inference=RUNTIME),
        "frugal": device_file(power={"single_core": "2 W"}, more=assumed(backward_overhead="1 s")),
        "own": device_file(inference=under("peak", assumed(**INT8)) + assumed(launch_overhead="1 us")),
        "free": device_file(launch="0 s"),
        "known": device_file(launch="9 ms").replace("9 ms, status: assumed", "9 ms, status: measured"),
    }
    for name, text in texts.items():
        (tmp_path / "devices" / f"{name}.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    return tmp_path


@pytest.fixture
def model(boards):
    """A product of 1000 by 1000: 2 MFLOP per sample."""
    return write(boards / "m.onnx", GEMM, {"w": floats(1000, 1000)}, ["batch", 1000])


def fake(function, measurement, *_, **__):
    """Stands in for a fresh process: calls of 1 to 100 ms; PyTorch's take twice as long."""
    if function is profile:
        return [OperatorTime(f"n{place}", "Gemm", 1.0, 0.05) for place in range(20)]
    in_torch = function is time_torch
    calls = TimedCalls(20, [(2 if in_torch else 1) * place / 1000 for place in range(1, 101)], 0.5)
    runtime, load_s = ("torch 1", None) if in_torch else ("onnxruntime 1", 0.25)
    return measured(measurement, runtime, load_s, 1000, calls)


def test_figures_of_a_measurement(model):
    """Percentiles, samples per second over all calls, and whether the budget stopped it."""
    found = bench(model, BenchOptions(threads=(1, 2), batch=4), fake)
    assert [row.threads for row in found.measured] == [1, 2]
    first = found.measured[0]
    assert (first.p50_s, first.p90_s, first.p99_s) == pytest.approx((0.0505, 0.0901, 0.09901))
    assert first.images_per_s == pytest.approx(4 * 100 / 5.05)
    assert first.stopped_early
    assert len(found.slowest) == 10
    assert (found.flops, found.kernels, found.quantised) == (4 * 2_000_000, 1, False)
    assert "does not say which run" in found.pytorch
    json.dumps(document(found), allow_nan=False)


def test_predictions_by_hand(model):
    """By the figures of training or of the inference runtime; energy at the active power."""
    options = BenchOptions(threads=(), devices=("plain", "served", "frugal"))
    plain, served, frugal = bench(model, options, fake).devices
    moved = 4 * (1000 + 1_000_000 + 1000)
    # 2 MFLOP at half of 1 GFLOP/s are as long as the 4 MB, and 8 us shorter.
    assert plain.price.seconds == pytest.approx(max(2e6 / 0.5e9, moved / 1e9) + 1e-3)
    assert plain.price.figures == "training"
    assert plain.price.joules == pytest.approx(5 * plain.price.seconds)
    assert served.price.seconds == pytest.approx(max(2e6 / 1e9, moved / 1e9) + 1e-6)
    assert (served.price.figures, served.price.dtype) == ("ort 9", "fp32")
    assert served.price.images_per_s == pytest.approx(1 / served.price.seconds)
    # One core draws 2 W while it starts the kernel for 1 ms; inference has no backward pass.
    assert frugal.price.seconds == pytest.approx(moved / 1e9 + 1e-3)
    assert frugal.price.joules == pytest.approx(5 * moved / 1e9 + 2 * 1e-3)


def test_quantised_predictions(boards, model):
    """Int8 where the device has it, fp32 for the rest; floats are priced as if quantised only on request."""
    graph = graph_of(boards / "q.onnx", QUANTISED, QUANTISED_WEIGHTS, ["batch", 10])
    rows = {row.device: row for row in predictions(graph, ("plain", "wide", "narrow"), 1)}
    assert "no figure for int8" in rows["plain"].unknown
    assert rows["plain"].price is None
    by_hand = (55 + 130 + 56) / 1e9 + 3e-6
    assert rows["wide"].price.dtype == "fp32 + int8"
    assert rows["wide"].price.seconds == pytest.approx(by_hand)
    # What stands before the first product moves the same bytes on a device that has int8 alone.
    assert rows["narrow"].price.dtype == "int8"
    assert rows["narrow"].price.seconds == pytest.approx(by_hand)
    assert predictions(graph, ("plain",), 1, "fp32")[0].price.dtype == "fp32"
    options = BenchOptions(threads=(), devices=("narrow",))
    assert "no figure for fp32" in bench(model, options, fake).devices[0].unknown
    assert bench(model, replace(options, dtype="int8"), fake).devices[0].price.seconds > 0


def test_the_card_shows_the_measurements(model):
    found = bench(model, BenchOptions(), fake)
    with pytest.raises(UserError, match="no model card"):
        save(found)
    card = model.with_suffix(".md")
    card.write_text("# A model\n\n## Latency\n\nold\n\n## Licence\n\nfree\n", encoding="utf-8")
    save(found)
    save(found)
    page = card.read_text(encoding="utf-8")
    assert page.count("## Latency") == 1
    assert "old" not in page
    assert "| onnxruntime 1 | 1 | 250 ms | 50.5 ms | 90.1 ms | 99 ms |" in page
    assert page.endswith("## Licence\n\nfree\n")
    content = model.read_bytes()
    assert latency_section(model, content).splitlines()[0] == "## Latency"
    assert latency_section(model, content + b"\n") == ""
    results_file(model).write_text("{", encoding="utf-8")
    assert latency_section(model, content) == ""


@pytest.mark.nightly
def test_the_command(model, capsys):
    """Tables within 100 columns; one JSON document; a ratio names its precisions: PyTorch's is fp32."""
    status, out, _ = run_command(capsys, "bench", model, "--threads", 1, "--runs", 5, "--device", "served")
    assert (status, "onnxruntime" in out, "served" in out) == (0, True, True)
    assert max(map(len, out.splitlines())) <= 100
    status, out, _ = run_command(capsys, "bench", model, "--device", "all", "--predict-only", "--json")
    assert (status, json.loads(out)["measured"]) == (0, [])
    found = bench(model, BenchOptions(), fake)
    found = replace(found, precision="int8", measured=2 * found.measured)
    assert "PyTorch in fp32 / ONNX Runtime in int8, 1 thread: 1.00" in shown(tables(found), 100)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "nowhere"], "unknown device 'nowhere'"),
        (["--dtype", "fp17"], "unknown number type"),
        (["--predict-only"], "--predict-only needs --device"),
        (["--run", "."], "does not say which run"),
        (["--card", "--threads", "1", "--runs", "1"], "no model card"),
    ],
)
def test_bad_input(model, capsys, arguments, message):
    status, out, err = run_command(capsys, "bench", model, *arguments)
    assert (status, out) == (2, "")
    assert message in err
