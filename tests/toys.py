"""Plans for the toy policy in ``own/policies``, under which jobs are lost, late and cut; own policies."""

from pathlib import Path
from textwrap import dedent, indent

import pytest
from plans import plan, prices

from edgefl.core import catalogue
from edgefl.core.plan import Plan

# A folder for EDGEFL_PATH.
TOYS = Path(__file__).parent / "own"


def toy(**settings) -> Plan:
    """A plan of five unlike clients on the toy policy."""
    clients, rounds = settings.pop("clients", 5), settings.pop("rounds", 12)
    stateful, radio_w = settings.pop("stateful", True), settings.pop("radio_w", 1.0)
    table = prices(
        "train",
        clients,
        stateful=stateful,
        down_delay_s=0.125,
        down_bps=8e6,
        up_bps=4e6,
        work_s=[1.0 + client for client in range(clients)],
        down_bytes=1_000_000,
        up_bytes=500_000,
        flops=10**9,
        idle_w=2.0,
        compute_w=3.0,
        radio_w=radio_w,
        receive_j_per_mbit=0.1,
        transmit_j_per_mbit=0.2,
        tail_w=0.5,
        tail_s=0.25,
    )
    params = catalogue.load("policies", "toy").Params(**settings)
    return plan([table], rounds=rounds, policy="toy", params=params)


def written(folder: Path, monkeypatch: pytest.MonkeyPatch, serve: str) -> None:
    """Writes the policy "written", without parameters, below a folder where scenarios find it."""
    (folder / "policies").mkdir(parents=True)
    head = (
        '"""Written in a test."""\n'
        "from edgefl.core.event import Kind\n"
        "from edgefl.world.policies import Policy\n"
        "class Params(Policy):\n"
        "    def merges_stale(self):\n        return True\n"
    )
    (folder / "policies" / "written.py").write_text(head + indent(dedent(serve), "    "), encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(folder))
