"""Power while a calibration runs: the host's counters and sensors, and a wattmeter's log."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from calibrated import Worker, files, trace_once

from edgefl.calibrate import Effort, calibrate, power
from edgefl.calibrate.energy import EnergyLog, EnergySpan, host_source
from edgefl.calibrate.power import Meter, Powers, read_log
from edgefl.core.errors import UserError
from edgefl.planning.fleets import device

RAPL = "sys/class/powercap/intel-rapl"
CHIP = "sys/class/hwmon/hwmon3"
JETSON = {"name": "ina3221", "in1_label": "VDD_GPU", "in1_input": "5000", "curr1_input": "300"}
JETSON |= {"in2_label": "VDD_IN", "in2_input": "5000", "curr2_input": "1200"}


def packages(root: Path, microjoules: int, wraps: int = 0) -> Path:
    """A powercap tree of two packages, one with a subdomain that has its own counter."""
    for name in ("0", "1", "0:0"):
        folder = f"{RAPL}:{name}"
        files(root, folder, energy_uj=microjoules, **({"max_energy_range_uj": wraps} if wraps else {}))
    return root


def test_the_processors_energy_is_the_sum_of_its_packages(tmp_path):
    """Subdomains, part of their package, do not count again; a counter goes on where it wraps around."""
    source, why = host_source(packages(tmp_path, 1_000_000))
    assert (why, "powercap" in source.what) == ("", True)
    packages(tmp_path, 3_000_000)
    assert source.joules(0.0) == 4.0
    packages(tmp_path, 3_500_000)
    assert source.joules(1.0) == 5.0
    for name, wraps, joules in (("known", 10_000_000, 3), ("unknown", 0, 0)):
        source, _ = host_source(packages(tmp_path / name, 9_000_000, wraps))
        packages(tmp_path / name, 500_000)
        assert source.joules(0.0) == pytest.approx(joules)  # nothing is added where the range is not known


def test_a_jetson_is_measured_at_its_input(tmp_path):
    """The INA3221's channel VDD_IN, volts times amperes; it measures the board, so it goes before RAPL."""
    packages(tmp_path, 1)
    files(tmp_path, CHIP, **JETSON)
    source, why = host_source(tmp_path)
    assert (why, source.what) == ("", "the board's input VDD_IN (INA3221)")
    assert source.joules(10.0) == 0.0
    assert source.joules(12.0) == pytest.approx(2 * 6.0)
    files(tmp_path, CHIP, curr2_input="2400")
    assert source.joules(13.0) == pytest.approx(12 + (6 + 12) / 2)


def test_power_is_the_slope_between_two_times():
    """2 W for 10 s, then 5 W; a span's ends may lie between samples, and three samples are needed."""
    log = EnergyLog([float(second) for second in range(21)], [])
    log.joules = [2.0 * second if second < 10 else 20 + 5.0 * (second - 10) for second in log.times_s]
    spans = (0.5, 9.5), (10.2, 19.9), (8, 12), (1, 3), (-100, 2)
    assert [log.watts(EnergySpan(*span)) for span in spans] == pytest.approx([2, 5, 3.5, 2, 2])
    assert log.watts(EnergySpan(1.1, 3)) is log.watts(EnergySpan(30, 40)) is None


HEAD = "time,watts\n"


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "100,2\n101,2\n102,4\n",
        "100,2\n101,2\n\n102,4",
        "\ufeffTime, Watts\n1970-01-01T00:01:40Z,2\n1970-01-01T02:01:41+02:00,2\n1970-01-01 00:01:42.0Z,4\n",
    ],
)
def test_a_wattmeters_log(tmp_path, text):
    """Seconds since the epoch or ISO times, with or without a head; straight lines between samples."""
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    log = read_log(path)
    assert (log.times_s, log.joules) == ([100, 101, 102], [0, 2, 5])


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (HEAD + "100,2\n100,3\n", 3, "'100' is not later than the time before it"),
        (HEAD + "100,2\n101\n", 3, "'101' must be a time and watts"),
        ("seconds;watts\n100;2\n", 1, "'seconds;watts' must be a time and watts"),
        (HEAD + "noon,2\n", 2, "'noon' must be seconds since the epoch or an ISO 8601 time"),
        (HEAD + "nan,2\n", 2, "'nan' must be a finite time"),
        (HEAD + "100,two\n", 2, "'two' must be watts"),
        (HEAD + "100,-1\n", 2, "-1 W must be between 0 and 1,000,000"),
        (HEAD + f"100,{'9' * 5000}\n", 2, "must be between 0 and 1,000,000"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, text, line, says):
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=says) as caught:
        read_log(path)
    assert caught.value.where == f"{path}:{line}"
    assert len(str(caught.value)) < 400


SHORT = Effort(repeats=1, kernel_s=0.0, step_s=0.0, inference_s=0.0, power_s=0.0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder on EDGEFL_PATH."""
    trace_once(monkeypatch)
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    return tmp_path


def _log(path: Path, *watts: float) -> Path:
    """A log of 10 s at each of the powers, from 1000 s on."""
    lines = [f"{1000 + 10 * place + second},{one}" for place, one in enumerate(watts) for second in range(10)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _worked(monkeypatch) -> Worker:
    """Measuring processes and a rest of 9 s each, one after another, from 1000 s on."""
    worker = Worker(1010.0)
    clock = iter([1000.0, 1009.0])
    # Not of the module itself, which logging asks for the time too.
    monkeypatch.setattr(power, "time", SimpleNamespace(time=lambda: next(clock), sleep=lambda _: None))
    return worker


@pytest.mark.nightly
def test_a_wattmeters_log_gives_the_three_powers(folder, monkeypatch):
    """Of the spans in which the machine rested, worked on one core and on all threads."""
    path = _log(folder / "log.csv", 2.0, 3.0, 7.0)
    found = calibrate("mine", run=_worked(monkeypatch), effort=SHORT, power_log=path)
    draws = device("mine").power
    assert (draws.idle.value, draws.single_core.value, draws.active.value) == (2.0, 3.0, 7.0)
    assert draws.idle.status == draws.single_core.status == draws.active.status == "measured"
    assert "with one core busy; the user's wattmeter" in draws.single_core.source
    assert not any("power" in note for note in found.notes)


@pytest.mark.parametrize(
    ("watts", "known", "says"),
    [
        ((2, 2, 2), (2, 2, 2), ""),
        ((8, 3, 7), (None, None, None), "busy with other work"),
        ((2, 9, 7), (2, None, 7), "single_core is left out: 9 W"),
        ((2, 1, 7), (2, None, 7), "single_core is left out: 1 W"),
    ],
)
def test_powers_are_in_order(watts, known, says):
    """Idle power above active is not written, and one core's only between the two."""
    spans = [EnergySpan(10.0 * place, 10 * place + 9) for place in range(3)]
    times = [span.start_s + second for span in spans for second in range(10)]
    log = EnergyLog.of_power(times, [one for one in watts for _ in range(10)])
    found = power._powers(log, spans, "a meter")  # noqa: SLF001 - without a calibration
    assert (found.idle, found.single_core, found.active) == pytest.approx(known)
    assert says in found.why + " ".join(found.notes)
    assert bool(found.why or found.notes) == bool(says)


def test_readings_have_any_unit_of_power():
    assert Powers.read_off("3W", "9000 mW") == Powers(3, None, 9, "read off a meter by the user")
    assert Powers.read_off(None, None) is None


@pytest.mark.nightly
def test_a_users_readings_are_the_devices_powers(folder):
    """Without measuring any; their source says who read them; a log beside them would contradict them."""
    root = files(folder / "root", CHIP, **JETSON)
    calibrate("mine", run=Worker(), effort=SHORT, root=root, powers=Powers.read_off("3W", "9 W"))
    draws = device("mine").power
    assert (draws.idle.value, draws.active.value, draws.single_core) == (3, 9, None)
    for one in (draws.idle, draws.active):
        assert (one.status, one.source.endswith("read off a meter by the user")) == ("measured", True)
    with pytest.raises(UserError, match="exclude each other"):
        Meter(folder / "log.csv", folder, Powers.read_off("3W", "9W"))


@pytest.mark.parametrize(
    ("idle", "active", "says", "where"),
    [
        ("3W", None, "--idle needs --active", "--idle"),
        (None, "9W", "--active needs --idle", "--active"),
        ("3", "9W", "write a number and a unit", "--idle"),
        ("9W", "3000 mW", "3000 mW in training is below 9W at rest", "--active"),
    ],
)
def test_wrong_readings_are_refused(idle, active, says, where):
    with pytest.raises(UserError, match=says) as caught:
        Powers.read_off(idle, active)
    assert caught.value.where == where
