"""What the server computes: closed forms, the clock that waits for it, and where it is shown."""

from collections import Counter
from dataclasses import replace
from math import ceil

import pytest
import torch
from builders import build_method, build_net
from commands import run_command
from nightly import sampled
from plans import device, kernel, plan, prices, told
from replayed import assert_same, small

import edgefl
from edgefl.compute.meta import merge_trace, one_merge
from edgefl.compute.tracer import Tracer
from edgefl.core import catalogue
from edgefl.core.cost import ELEMENTWISE, as_text, of_text
from edgefl.core.event import ENDINGS, Kind
from edgefl.core.merging import MergeTrace, ServerWork
from edgefl.world.needs import Merge

WIDTH, CLASSES, CLIENTS = 24, 10, 5
NET = build_net("mlp", (1, 8, 8), hidden=(WIDTH,))
NUMBERS = sum(leaf.numel() for part in NET.init(0).values() for leaf in part.values())


def traced(method, exchange="train", net=NET, **parameters):
    """The trace of an exchange's merge."""
    built = build_method(method, net, clients=CLIENTS, **parameters)
    (found,) = (one for one in built.exchanges if one.name == exchange)
    return merge_trace(built, found, net, CLIENTS)


@pytest.mark.parametrize("uploads", [1, 4])
def test_averaging_by_closed_form(uploads):
    """P numbers are scaled once (8 P bytes), then added n - 1 times (12 P); n + 2 models are held at most."""
    trace = traced("fedavg")
    work = trace.work(uploads)
    assert work.flops == 0
    assert work.bytes == 8 * NUMBERS + 12 * NUMBERS * (uploads - 1)
    assert work.launches == 4 * uploads
    assert trace.peak_bytes(uploads) == 4 * NUMBERS * (uploads + 2)


@pytest.mark.parametrize(("width", "uploads"), [(24, 7), (33, 2)])
def test_the_head_of_ffc_by_closed_form(width, uploads):
    """Eigenvectors of V (9 l^3), and two products of them and U (2 l^2 C each), however many sent theirs.

    As a product of l x k and k x l, k is rounded up.
    """
    net = build_net("mlp", (1, 8, 8), hidden=(width,))
    work = traced("ffc", "calibrate", net).work(uploads)
    assert work.flops == 2 * width**2 * ceil(9 * width / 2) + 4 * width**2 * CLASSES
    # U and V in fp32 are read, their sums in fp64 read and written.
    numbers = width * (width + CLASSES)
    once = traced("ffc", "calibrate", net).work(1).bytes
    assert work.bytes == once + (uploads - 1) * numbers * (4 + 8 + 8)


@pytest.mark.nightly
def test_ccvr_by_closed_form():
    """Of each class a root of its covariance and M draws, then epochs of forward and weight gradient."""
    drawn, epochs = 20, 3
    work = traced("ccvr", "statistics", virtual=drawn, epochs=epochs, batch_size=16).work(4)
    a_class = 2 * WIDTH**2 * (9 * WIDTH // 2) + 2 * WIDTH**3 + 2 * drawn * WIDTH**2
    assert work.flops == CLASSES * a_class + epochs * CLASSES * drawn * 4 * WIDTH * CLASSES


# Its merge takes seconds to trace by default.
SETTINGS = {"ccvr": {"virtual": 4, "epochs": 1}}


@sampled(5, "method", sorted(catalogue.entries("methods")))
def test_any_number_of_uploads_is_known(method):
    """What polynomials say of work and peak memory is what a trace of so many uploads says."""
    built = build_method(method, NET, clients=CLIENTS, **SETTINGS.get(method, {}))
    for exchange in built.exchanges:
        trace = merge_trace(built, exchange, NET, CLIENTS)
        assert of_text(MergeTrace, as_text(trace)).work(4) == trace.work(4)
        for uploads in (1, 4, 7, 11):
            kernels, peak = one_merge(built, exchange, NET, CLIENTS, uploads)
            assert +Counter(trace.work(uploads).kernels) == Counter(kernels)
            assert trace.peak_bytes(uploads) == peak


PAIRS = """
from dataclasses import replace
import torch
from edgefl.methods import MethodParams
from edgefl.protocol import NetObjective, averaging, leaves, local_training

class Params(MethodParams):
    how: str = "pairs"

    def build(self, site):
        shared = tuple(site.net.parts())
        base = averaging(site, local_training(site, NetObjective(site.net)), shared=shared)
        (train,) = base.exchanges
        def merge(server, arrivals):
            every = [[leaf.flatten() for leaf in leaves(one.upload)] for one in arrivals]
            flat = torch.stack([torch.cat(one) for one in every])
            times = {"pairs": 1, "looks": float(flat.sum()) > 0 if self.how == "looks" else 0}
            for _ in range(int(times.get(self.how, len(arrivals) ** 3))):
                flat @ flat.mT
            return train.merge(server, arrivals)
        return replace(base, exchanges=(replace(train, merge=merge),))
"""


@pytest.fixture
def own_method(tmp_path, monkeypatch):
    """A method whose server compares all pairs of uploads."""
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "pairs.py").write_text(PAIRS)
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))


@pytest.mark.usefixtures("own_method")
@pytest.mark.parametrize("how", ["pairs", "looks"])
def test_work_that_grows_with_the_square(how):
    """A product of (n x P) and (P x n); also where the merge asks for a value, which is then a real one."""
    trace = traced("pairs", how=how)
    assert [trace.work(uploads).flops for uploads in (1, 6, 40)] == [
        2 * uploads**2 * NUMBERS for uploads in (1, 6, 40)
    ]


@pytest.mark.usefixtures("own_method")
def test_work_that_no_square_bounds_is_refused(capsys):
    """With the exchange, the place and what to do."""
    given = ["check", "quickstart", "--set", "server.device=laptop-cpu", "--set", "sweep=null"]
    code, _, err = run_command(capsys, *given, "--set", "method={name: pairs, how: cube}")
    assert code == 2
    assert "the server's work in 'train' is neither affine nor quadratic" in err
    assert "server.device" in err


A, B, PAIR = (torch.empty(sides, device="meta") for sides in ((12, 12), (12, 5), (2, 12, 12)))
LINALG = {
    "solve": (lambda: torch.linalg.solve(A, B), 2 * 12**3 / 3 + 2 * 12**2 * 5),
    "solve a vector": (lambda: torch.linalg.solve(A, B[:, 0]), 2 * 12**3 / 3 + 2 * 12**2),
    "solve two vectors": (lambda: torch.linalg.solve(PAIR, A[:2]), 2 * (2 * 12**3 / 3 + 2 * 12**2)),
    "solve two for the same": (lambda: torch.linalg.solve(PAIR, B), 2 * (2 * 12**3 / 3 + 2 * 12**2 * 5)),
    "solve on the right": (lambda: torch.linalg.solve(A, B.mT, left=False), 2 * 12**3 / 3 + 2 * 12**2 * 5),
    "inverse": (lambda: torch.linalg.inv(A), 2 * 12**3),
    "cholesky": (lambda: torch.linalg.cholesky(A), 12**3 / 3),
    "cholesky solve": (lambda: torch.cholesky_solve(B, A), 2 * 12**2 * 5),
    "triangle": (lambda: torch.linalg.solve_triangular(A, B, upper=True), 12**2 * 5 + 12**2),
    "svd": (lambda: torch.linalg.svd(B, full_matrices=False), 14 * 12 * 5**2 + 8 * 5**3),
    "pinv": (lambda: torch.linalg.pinv(B), 16 * 12 * 5**2 + 8 * 5**3),
    "eigenvectors": (lambda: torch.linalg.eigh(A), 9 * 12**3),
}


@pytest.mark.parametrize("name", LINALG)
def test_factoring_by_closed_form(name):
    """Golub and Van Loan 2013; a half of n^2 operations is rounded up, as in the triangle's."""
    call, flops = LINALG[name]
    with Tracer() as tracer:
        call()
    assert sum(one.flops for one in tracer.kernels) == flops


# A merge of n uploads reads n GB, at 0.5 GB/s, in n kernels of 1 ms.
def server(**numbers):
    """A server whose merges take 2.001 s an upload."""
    trace = MergeTrace([(kernel(ELEMENTWISE, size=10**9), (2, 3, 5))], [], (10, 20, 30, 50, 70))
    return ServerWork("board", device(**numbers), {"train": trace, "late": trace})


A_MERGE_S = 2.001


def test_a_merge_is_priced_like_a_client_s_work():
    """Seconds by the roofline, joules of the whole device, and none of them known without its power."""
    found = server().price("train", 3)
    assert found.seconds == pytest.approx(3 * A_MERGE_S)
    assert (found.flops, found.moved_bytes, found.peak_bytes) == (0, 3 * 10**9, 30)
    assert found.joules == pytest.approx(3 * A_MERGE_S * 4.0)
    assert server(active=None).price("train", 3).joules is None
    assert server().price("train", 0).seconds == 0


def test_the_clock_waits_exactly_as_long():
    """Every round is longer by the merge's seconds, and its clients are asked after them."""
    free = plan([prices("train", 3, compute_s=[1.0, 2.0, 4.0])], rounds=3)
    _, needs, rows = told(replace(free, server_work=server()))
    merge_s = server().price("train", 3).seconds
    ends_s = [need.t_s for need in needs if isinstance(need, Merge)]
    now_s, expected = 0.0, []
    for _ in range(3):
        now_s = (now_s + 4.0) + merge_s
        expected.append(now_s)
    assert ends_s == expected
    assert sorted(set(rows["dispatched_s"])) == [0.0, *expected[:-1]]
    assert [need.cost.seconds for need in needs if isinstance(need, Merge)] == [merge_s] * 3


def test_a_version_exists_when_its_merge_is_done():
    """Buffered: clients that arrive meanwhile wait, and nobody is asked before."""
    given = plan(
        [prices("train", 4, compute_s=[1.0, 2.0, 3.0, 4.0])],
        rounds=4,
        policy="fedbuff",
        params=catalogue.load("policies", "fedbuff").Params(buffer=2),
    )
    _, needs, rows = told(replace(given, server_work=server()))
    merges = [(need.t_s - need.cost.seconds, need.t_s) for need in needs if isinstance(need, Merge)]
    # Clients 0 and 1 are merged from 2 s on; client 0, asked again at 1 s, and client 2 arrive meanwhile.
    assert merges[0] == pytest.approx((2.0, 2.0 + 2 * A_MERGE_S))
    assert merges[1][0] == pytest.approx(merges[0][1])
    for asked_s in rows["dispatched_s"]:
        assert not any(began + 1e-9 < asked_s < ended - 1e-9 for began, ended in merges)


def test_a_time_limit_that_comes_before_the_merge_is_done():
    """Its jobs are cut, and no version is made."""
    given = plan([prices("train", 2, compute_s=[1.0, 2.0])], until={"time": 4.0})
    _, needs, rows = told(replace(given, server_work=server()))
    assert not [need for need in needs if isinstance(need, Merge)]
    assert rows["ended_s"][rows["ending"] == ENDINGS.index(Kind.CUT)].tolist() == [4.0, 4.0]


def test_without_a_device_nothing_changes(tmp_path):
    """The same plan, the same events, and tables that say that it is free."""
    free, priced = small(tmp_path / "free"), small(tmp_path / "priced", server__device="laptop-cpu")
    assert "server_device" not in (free.folder / "plan.yaml").read_text()
    one, other = free.summary(), priced.summary()
    assert one.server is None
    assert one.run_id != other.run_id
    assert other.virtual_s == pytest.approx(one.virtual_s + other.server.seconds)
    assert (other.flops, other.down_bytes) == (one.flops, one.down_bytes)
    assert other.energy.joules == pytest.approx(one.energy.joules)
    assert one.accuracy == other.accuracy


@pytest.mark.nightly
def test_a_replay_on_another_server_is_the_run_on_it(tmp_path):
    """Priced anew, in every table; with none, it is free."""
    on_pi = small(tmp_path / "pi", server__device="raspberry-pi-4b")
    for name in ("laptop-cpu", None):
        edgefl.replay(on_pi.folder, overrides={"server.device": name}, out=tmp_path / f"replay {name}")
        fresh = small(tmp_path / f"fresh {name}", **({"server__device": name} if name else {}))
        assert_same(tmp_path / f"replay {name}", fresh.folder)
