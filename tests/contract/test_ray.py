"""The engine ``ray``: by day on a stand-in for Ray in this process, at night on two nodes on this host."""

import importlib
import importlib.machinery
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
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import psutil
import pytest
from small import SMALL

import edgefl
from edgefl.cli import main
from edgefl.core.errors import UserError
from edgefl.runs.group import RunResult

HAS_RAY = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="Ray, the extra `ray`, is not installed")

# Ray's socket paths have to be short.
SHORT = "/tmp"  # noqa: S108 - fresh folders in it

SCENARIO = {**SMALL, "name": "far", "seed": 3, "method": "fedclassavg", "server": {"rounds": 2}}
# FedClassAvg that notes where it is built, and may kill its worker, or its node, once.
OWN_METHOD = """
'''FedClassAvg under a name of the user's own.'''
import os, signal
from dataclasses import replace
from pathlib import Path
from edgefl.methods import fedclassavg


def above():
    return Path("/proc/%d/cmdline" % os.getppid()).read_text()


class Params(fedclassavg.Params):
    def build(self, site):
        import ray
        method = super().build(site)
        (train,) = method.exchanges
        if ray.is_initialized():
            node = ray.get_runtime_context().get_node_id()
            Path({folder!r}, "process-" + str(os.getpid())).write_text(node)

        def start(payload, state, ctx):
            marker = Path({folder!r}, "killed")
            victim = {kills}
            if victim is not None and not marker.exists():
                marker.touch()
                os.kill(victim, signal.SIGKILL)
            return train.work.start(payload, state, ctx)

        return replace(method, exchanges=(replace(train, work=replace(train.work, start=start)),))
"""

WORKER = "os.getpid() if ctx.client == 1 else None"
# A worker's parent is its node's raylet; without the head's, the cluster would end.
NODE = "os.getppid() if 'raylet' in above() and '--head' not in above() else None"

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
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.1)
    return found


@pytest.fixture(scope="module")
def cluster():
    """The address of two nodes of one CPU each, and how to add one; this process has their token."""
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
                yield address, partial(node, folder, environment, f"--address={address}")
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


def far_run(cluster, out, workers=2, **settings):
    engine = {"name": "ray", "address": cluster[0], "workers": workers, "state_memory": "1 kB"}
    return edgefl.run({**SCENARIO, **settings}, engine=engine, out=out).runs[0]


@pytest.fixture
def mine(tmp_path, own):
    """Makes a method of the user's own, which may kill a process, and gives its name."""
    return lambda kills=None: (
        own("methods", "mine", OWN_METHOD.format(folder=str(tmp_path), kills=kills)).stem
    )


class Ref:
    """Where an object lies in the stand-in's store."""

    def __init__(self, value):
        self.value = value


class Remote:
    """A function whose calls are done at once; the first is lost."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def remote(self, *arguments):
        """As of Ray: its ``future``."""
        self.calls += 1
        future = Future()
        if self.calls == 1:
            future.set_exception(sys.modules["ray.exceptions"].RayError("its worker died"))
        else:
            future.set_result(self.function(*arguments))
        return SimpleNamespace(future=lambda: future)


@pytest.fixture
def stand_in(monkeypatch):
    """What the engine calls of Ray, without processes: a cluster of three CPUs, which lists its calls."""
    ray, exceptions, asked = ModuleType("ray"), ModuleType("ray.exceptions"), []
    ray.__spec__ = importlib.machinery.ModuleSpec("ray", None, origin=__file__)
    exceptions.RayError = type("RayError", (Exception,), {})
    ray.is_initialized = lambda: False
    ray.init = lambda **settings: asked.append(settings)
    ray.shutdown = lambda: asked.append("shutdown")
    ray.cluster_resources = lambda: {"CPU": 3.0}
    ray.put, ray.get = Ref, lambda ref: ref.value
    ray.remote = lambda **_: Remote
    for name, module in (("ray", ray), ("ray.exceptions", exceptions)):
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("EDGEFL_PATH", "RAY_USAGE_STATS_ENABLED", "RAY_DEDUP_LOGS_SKIP_REGEX"):
        # What the engine and its worker set goes with the test.
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.delitem(sys.modules, "edgefl.compute.on_ray", raising=False)
    yield asked
    sys.modules.pop("edgefl.compute.on_ray", None)


def test_units_go_through_the_store_and_back(stand_in, loop, mine, tmp_path):
    """A method of the user's is sent along, a lost unit is sent again, and the bits are the loop's."""
    found = edgefl.run(
        {**SCENARIO, "method": mine()}, engine={"name": "ray", "workers": 2}, out=tmp_path / "far"
    ).runs[0]
    assert found.status == "done", found.reason
    assert same(found, loop)
    started, ended = stand_in
    assert started["address"] == "local"
    assert started["num_cpus"] == 2
    assert ended == "shutdown"
    # The worker's copy of the user's files, not the user's own.
    assert Path(os.environ["EDGEFL_PATH"]).parent.name.startswith("edgefl-")


def test_more_workers_than_the_cluster_has_are_refused(stand_in, tmp_path):
    with pytest.raises(UserError, match="4 workers need one CPU each, but the cluster has 3"):
        edgefl.run(SCENARIO, engine={"name": "ray", "workers": 4}, out=tmp_path / "far")
    assert stand_in[-1] == "shutdown"


@pytest.mark.nightly
@needs_ray
def test_two_nodes_give_the_loops_bits(cluster, loop, mine, tmp_path):
    """Both nodes work, also with a method of the user's, whose files are sent to them."""
    found = far_run(cluster, tmp_path / "far", workers=None, method=mine())
    assert found.status == "done", found.reason
    assert same(found, loop)
    assert list((found.folder / "states").iterdir())
    here = f"process-{os.getpid()}"
    nodes = {path.read_text() for path in tmp_path.glob("process-*") if path.name != here}
    assert len(nodes) == 2


@pytest.mark.nightly
@needs_ray
def test_a_killed_worker_changes_nothing(cluster, loop, mine, tmp_path):
    found = far_run(cluster, tmp_path / "far", method=mine(WORKER))
    assert found.status == "done", found.reason
    assert (tmp_path / "killed").exists()
    assert same(found, loop)


@pytest.mark.nightly
@needs_ray
def test_a_killed_node_changes_nothing(cluster, loop, mine, tmp_path):
    """What was trained there, and not yet fetched, is trained again elsewhere."""
    with cluster[1]():
        found = far_run(cluster, tmp_path / "far", workers=2, method=mine(NODE))
    assert found.status == "done", found.reason
    assert (tmp_path / "killed").exists()
    assert same(found, loop)


@pytest.mark.nightly
@needs_ray
def test_other_versions_are_refused(cluster, monkeypatch, tmp_path):
    from edgefl.compute import on_ray

    here = on_ray.versions()
    monkeypatch.setattr(on_ray, "versions", lambda: "edgefl 0.0.1")
    with pytest.raises(UserError, match=rf"has {re.escape(here)}, the driver has edgefl 0\.0\.1"):
        far_run(cluster, tmp_path / "far", workers=1)


@pytest.mark.nightly
@needs_ray
@pytest.mark.usefixtures("cluster")
def test_without_an_address_a_cluster_lives_for_the_run(loop, mine, tmp_path):
    """It is gone afterwards and prints nothing, also where a worker is killed."""
    path, out = tmp_path / "scenario.json", tmp_path / "far"
    path.write_text(json.dumps({**SCENARIO, "method": mine(WORKER)}))
    command = ["run", path, "--engine", "ray", "--workers", "1", "--out", out, "--json"]
    with tempfile.TemporaryDirectory(prefix="er-", dir=SHORT) as folder:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "edgefl", *command],
            env={**os.environ, "RAY_TMPDIR": folder},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert not any(
            folder in " ".join(one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])
        )
    assert json.loads(done.stdout)["runs"][0]["status"] == "done"
    begins = [line.split(":")[0] for line in done.stderr.splitlines()]
    # On a slow machine there are several lines of progress.
    assert [*dict.fromkeys(begins)] == ["note", "engine", "far"], done.stderr
    assert same(RunResult("far", out, "done", ""), loop)


def _fails(capsys, tmp_path, *arguments):
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


@pytest.mark.usefixtures("stand_in")
def test_no_answer_at_the_address(capsys, tmp_path):
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        said = _fails(capsys, tmp_path, "--ray-address", f"127.0.0.1:{line.getsockname()[1]}")
    assert "no Ray cluster answers at 127.0.0.1:" in said


def test_ray_is_not_installed(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "pip install 'edgefl-emulator[ray]'" in _fails(capsys, tmp_path)
