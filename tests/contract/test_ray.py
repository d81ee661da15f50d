"""The engine ``ray``, on a cluster of two nodes on this host."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from hooks import Hooks
from resumed import same_runs

import edgefl
from edgefl.cli import main
from edgefl.core.errors import UserError
from edgefl.runs.group import RunResult
from edgefl.store import read

HAS_RAY = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="Ray, the extra `ray`, is not installed")

# Ray's socket paths have to be short.
SHORT = "/tmp"  # noqa: S108 - fresh folders in it

SCENARIO = {
    "name": "far",
    "seed": 3,
    "task": {"dataset": "digits", "clients": 6},
    "model": {"name": "mlp", "hidden": [16]},
    "method": "fedclassavg",
    "local": {"epochs": 1, "batch_size": 16},
    "fleet": "home-lab",
    "server": {"rounds": 2},
}
OWN_METHOD = '"""FedAvg under a name of the user\'s own."""\n\nfrom edgefl.methods.fedavg import *\n'


# Runs a command, and ends it when this program's own input ends: also where the tests are killed.
LEASH = """
import subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
sys.stdin.read()
process.terminate()
process.wait()
"""


@contextmanager
def node(folder, environment, *arguments):
    """A node of a cluster, which ends with the block for certain."""
    command = [
        *(Path(sys.executable).with_name("ray"), "start", "--block", "--disable-usage-stats"),
        *("--object-store-memory=80000000", "--num-cpus=1", *arguments),
    ]
    with (folder / f"node{arguments[0]}.txt").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", LEASH, *command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        for one in psutil.process_iter():
            with suppress(OSError):
                if os.getsid(one.pid) == process.pid:
                    os.kill(one.pid, signal.SIGKILL)
        process.wait()


def _until(what, seconds=60):
    """What a function returns as soon as it returns something."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.1)
    return found


@pytest.fixture(scope="module")
def cluster():
    """The address of two nodes of one CPU each; this process has their token."""
    folder = Path(tempfile.mkdtemp(prefix="er-", dir=SHORT))
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    settings = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        for name, value in settings.items():
            patch.setenv(name, value)
        _reread_settings()
        # The machine's other tests must not cost this one its workers.
        environment = {**os.environ, "RAY_memory_monitor_refresh_ms": "0"}
        head = ["--head", "--port=0", "--include-dashboard=false", f"--temp-dir={folder}"]
        where = folder / "ray_current_cluster"
        with node(folder, environment, *head):
            address = _until(lambda: where.is_file() and where.read_text().strip())
            with node(folder, environment, f"--address={address}"):
                _until(lambda: _nodes(folder) == 2)
                yield address
    shutil.rmtree(folder, ignore_errors=True)


def _reread_settings():
    """Ray reads its environment when it is imported, which another test may have done."""
    raylet = importlib.import_module("ray._raylet")
    # Versions without tokens have nothing to read.
    if hasattr(raylet, "AuthenticationTokenLoader"):
        raylet.Config.initialize("")
        raylet.AuthenticationTokenLoader.instance().reset_cache()


def _nodes(folder):
    return sum("Ray runtime started" in path.read_text() for path in folder.glob("node*.txt"))


@pytest.fixture(scope="module")
def loop(tmp_path_factory):
    """The run on the loop engine."""
    return edgefl.run(SCENARIO, engine="loop", out=tmp_path_factory.mktemp("loop") / "run").runs[0]


def same(one, other):
    """Whether two runs have the same bits in versions, events and losses."""
    files = [
        {path.name: path.read_bytes() for path in sorted(run.folder.glob("*s/*.safetensors"))}
        for run in (one, other)
    ]
    losses = [[row["loss"] for row in run.table("merges")] for run in (one, other)]
    return (
        len(files[0]) > 0
        and files[0] == files[1]
        and losses[0] == losses[1]
        and one.table("events") == other.table("events")
    )


def far_run(address, out, workers=2, **settings):
    """The run on a cluster, its clients' states in files."""
    engine = {"name": "ray", "address": address, "workers": workers, "state_memory": "1 kB"}
    return edgefl.run({**SCENARIO, **settings}, engine=engine, out=out).runs[0]


@pytest.fixture
def answered(monkeypatch):
    """The seats of those who did an order, one for each."""
    from edgefl.compute.on_ray import RayWorkerPool
    from edgefl.compute.remote import Done

    found, receive = [], RayWorkerPool.receive

    def spied(self):
        number, answer = receive(self)
        if isinstance(answer, Done):
            found.append(self.seats[number])
        return number, answer

    monkeypatch.setattr(RayWorkerPool, "receive", spied)
    return found


def _kill_at(monkeypatch, order, number=signal.SIGKILL):
    """Sends a signal to the worker that is given the n-th order; returns what the driver heard of deaths."""
    from edgefl.compute import on_ray
    from edgefl.compute.remote import Died, Gone

    sent, heard, send, receive = [], [], on_ray.RayWorkerPool.send, on_ray.RayWorkerPool.receive

    def spied_send(self, worker, what):
        sent.append(worker)
        if len(sent) == order:
            os.kill(self.seats[worker].pid, number)
        send(self, worker, what)

    def spied_receive(self):
        number, answer = receive(self)
        if isinstance(answer, Died | Gone):
            heard.append(type(answer).__name__)
        return number, answer

    monkeypatch.setattr(on_ray.RayWorkerPool, "send", spied_send)
    monkeypatch.setattr(on_ray.RayWorkerPool, "receive", spied_receive)
    return heard


@needs_ray
def test_two_nodes_give_the_loops_bits(cluster, loop, answered, tmp_path):
    """Both nodes work, with one node's processes apart from the other's, and the result is the loop's."""
    found = far_run(cluster, tmp_path / "far", workers=None)
    assert same(found, loop)
    assert list((found.folder / "states").iterdir())
    assert len(answered) == 12
    assert len({seat.node for seat in answered}) == 2


class _Interrupting(Hooks):
    """Stops a run after its first evaluation."""

    def evaluated(self, so_far):
        del so_far
        raise KeyboardInterrupt


@pytest.mark.nightly
@needs_ray
def test_a_run_that_was_stopped_goes_on(cluster, loop, tmp_path):
    """On the same cluster, with the loop's bits in the end."""
    engine = {"name": "ray", "address": cluster, "workers": 2}
    with pytest.raises(KeyboardInterrupt):
        edgefl.run(SCENARIO, engine=engine, out=tmp_path / "far", callbacks=_Interrupting())
    (found,) = edgefl.resume(tmp_path / "far").runs
    assert found.status == "done", found.reason
    same_runs(loop.folder, found.folder, but=("engine", "trainer"))


@needs_ray
def test_a_killed_worker_is_replaced(capsys, cluster, loop, monkeypatch, tmp_path):
    """Another worker does its unit, and Ray prints nothing about it on standard output."""
    heard = _kill_at(monkeypatch, 5)
    found = far_run(cluster, tmp_path / "far")
    assert heard == ["Died"]
    assert same(found, loop)
    assert capsys.readouterr().out == ""


@pytest.mark.nightly
@needs_ray
def test_a_stopped_worker_is_replaced(cluster, loop, monkeypatch, tmp_path, caplog):
    """The driver says which one it is; another does its job, with the same bits, and SIGTERM is ours."""
    monkeypatch.setattr("edgefl.compute.silence.LOOK_S", 1.0)
    monkeypatch.setattr("edgefl.compute.silence.LIMIT_S", 2.0)
    before = signal.getsignal(signal.SIGTERM)
    heard = _kill_at(monkeypatch, 3, signal.SIGSTOP)
    run = far_run(cluster, tmp_path / "run")
    assert heard == ["Died"]
    assert re.search(r"worker \d \(process \d+ on .+\) is stopped", caplog.text)
    assert same(run, loop)
    assert signal.getsignal(signal.SIGTERM) is before


@needs_ray
def test_only_a_worker_is_killed_in_a_workers_place():
    """Two computers of a cluster may have one name, and here another process may have the worker's number."""
    from edgefl.compute.on_ray import _kill

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        _kill(process.pid)
        assert process.poll() is None
        process.communicate(b"\n")
    assert process.returncode == 0
    _kill(process.pid)


@pytest.mark.nightly
@needs_ray
def test_a_worker_that_cannot_be_replaced_is_given_up(cluster, loop, monkeypatch, tmp_path):
    """If the cluster has no room for another in time, the others do the work."""
    from edgefl.compute import on_ray

    heard, hire = _kill_at(monkeypatch, 5), on_ray.RayWorkerPool._hire  # noqa: SLF001

    def hurried(self, number):
        with monkeypatch.context() as patch:
            if self.seats:
                patch.setattr(on_ray, "COMING_S", 0.0)
            hire(self, number)

    monkeypatch.setattr(on_ray.RayWorkerPool, "_hire", hurried)
    found = far_run(cluster, tmp_path / "far")
    assert heard == ["Died", "Gone"]
    assert same(found, loop)


@pytest.mark.nightly
@needs_ray
def test_a_users_method_travels(cluster, monkeypatch, tmp_path):
    """Files on ``EDGEFL_PATH`` are sent to the cluster's nodes, which have no such folder."""
    folder = tmp_path / "own" / "methods"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text(OWN_METHOD)
    monkeypatch.setenv("EDGEFL_PATH", str(folder.parent))
    near = edgefl.run({**SCENARIO, "method": "mine"}, engine="loop", out=tmp_path / "near").runs[0]
    found = far_run(cluster, tmp_path / "far", method="mine")
    assert found.status == "done", found.reason
    assert same(found, near)


@needs_ray
def test_other_versions_are_refused(cluster, monkeypatch, tmp_path):
    """The error names both versions."""
    from edgefl.compute import on_ray

    here = on_ray.versions()
    monkeypatch.setattr(on_ray, "versions", lambda: {**here, "edgefl": "0.0.1"})
    with pytest.raises(UserError, match=rf"edgefl {here['edgefl']}, this computer has edgefl 0\.0\.1"):
        far_run(cluster, tmp_path / "far", workers=1)


@needs_ray
def test_too_many_workers_are_refused(cluster, monkeypatch, tmp_path):
    """At once if the cluster is too small; after a while if it has no room."""
    from edgefl.compute import on_ray

    with pytest.raises(UserError, match="3 workers need one CPU each, but the cluster has 2"):
        far_run(cluster, tmp_path / "many", workers=3)
    with read(tmp_path / "many") as found:
        assert "but the cluster has 2" in found.meta["reason"]
    monkeypatch.setattr(on_ray, "COMING_S", 0.0)
    late = far_run(cluster, tmp_path / "late")
    assert late.status == "failed"
    assert "room for 0 of 2 workers" in late.reason


LEAVING = """
import sys
from pathlib import Path
from edgefl.compute.folders import owned_folder
owned_folder("ray-", Path(sys.argv[1]))
"""
LOCAL = """
import sys
from pathlib import Path
from edgefl.cli import main
from edgefl.compute import ray_cluster
ray_cluster._SHORT = Path(sys.argv[1])
main(sys.argv[2:])
"""


@needs_ray
@pytest.mark.usefixtures("cluster")
def test_without_an_address_a_cluster_lives_for_the_run(loop, tmp_path):
    """It starts on this computer, beside others, prints nothing, and is gone afterwards, with its folder."""
    path, out = tmp_path / "scenario.json", tmp_path / "far"
    path.write_text(json.dumps(SCENARIO))
    command = ["run", path, "--engine", "ray", "--workers", "1", "--out", out, "--json"]
    with tempfile.TemporaryDirectory(prefix="er-", dir=SHORT) as folder:
        # What a driver that was killed left there goes, too.
        subprocess.run([sys.executable, "-c", LEAVING, folder], check=True)
        assert list(Path(folder).iterdir())
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", LOCAL, folder, *command],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert list(Path(folder).iterdir()) == []
        assert not any(folder in " ".join(one.info["cmdline"] or []) for one in processes())
    assert json.loads(done.stdout)["runs"][0]["status"] == "done"
    begins = [line.split(":")[0] for line in done.stderr.splitlines()]
    # On a slow machine there are several lines of progress.
    assert [*dict.fromkeys(begins)] == ["note", "engine", "far"], done.stderr
    assert same(RunResult("far", out, "done", ""), loop)


@pytest.mark.nightly
@needs_ray
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux can wait for Ray's agent")
def test_a_killed_agent_is_a_failed_run_with_a_reason(tmp_path):
    """Ray ends the process at once; the reason is on standard error, and what was saved can be read."""
    path, out = tmp_path / "scenario.json", tmp_path / "run"
    path.write_text(json.dumps({**SCENARIO, "server": {"rounds": 10**5}}))
    command = ["-m", "edgefl", "run", path, "--engine", "ray", "--workers", "1", "--out", out]
    driver = subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE, text=True)
    try:
        _until(lambda: [*out.glob("versions/*.safetensors")])
        (agent,) = (one for one in psutil.Process(driver.pid).children() if "raylet" in one.name())
        agent.kill()
        said = driver.communicate(timeout=30)[1]
    finally:
        driver.kill()
        driver.wait()
    assert driver.returncode == 1
    assert f"Ray's agent on this computer (raylet, process {agent.pid}) has ended" in said
    assert "Traceback" not in said
    with read(out) as found:
        assert found.rows("merges")


def processes():
    """All processes, with their command lines."""
    return psutil.process_iter(["cmdline"])


def _fails(capsys, tmp_path, *arguments):
    """What the command says that ends with status 2."""
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(SCENARIO))
    with pytest.raises(SystemExit) as stopped:
        main(["run", str(path), "--engine", "ray", "--out", str(tmp_path / "out"), *arguments])
    said = capsys.readouterr()
    assert stopped.value.code == 2
    assert said.out == ""
    assert said.err.count("error:") == 1
    assert "Traceback" not in said.err
    # What cannot start leaves nothing that would be in the way of the next attempt.
    assert not (tmp_path / "out").exists()
    return said.err


@needs_ray
def test_no_answer_at_the_address(capsys, tmp_path):
    """One message, at once."""
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        said = _fails(capsys, tmp_path, "--ray-address", f"127.0.0.1:{line.getsockname()[1]}")
    assert "no Ray cluster answers at 127.0.0.1:" in said


@needs_ray
def test_another_service_at_the_address(capsys, monkeypatch, tmp_path):
    """A port that accepts connections without answering is not a cluster either."""
    from edgefl.compute import ray_cluster

    monkeypatch.setattr(ray_cluster, "ANSWER_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        said = _fails(capsys, tmp_path, "--ray-address", f"127.0.0.1:{server.getsockname()[1]}")
    assert "no Ray cluster answers at 127.0.0.1:" in said


def test_ray_is_not_installed(capsys, monkeypatch, tmp_path):
    """The message names the extra."""
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "pip install 'edgefl-emulator[ray]'" in _fails(capsys, tmp_path)
