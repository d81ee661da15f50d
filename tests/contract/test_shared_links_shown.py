"""What commands say of links that clients share, of runs whose server has a slow uplink."""

import json

import pytest
from commands import run_command
from plans import sourced
from replayed import assert_same

import edgefl

FAST = {"sweep": None, "server.rounds": 5}
SLOW = {**FAST, "server.uplink": "200 kbit/s"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, settings in {"fast": FAST, "slow": SLOW}.items():
        edgefl.run("quickstart", overrides=settings, engine="null", out=folder / name)
    return folder


def printed(capsys, *arguments):
    status, out, err = run_command(capsys, *arguments)
    assert status == 0, err
    return out


def of(command, settings, *more):
    given = [word for key, value in settings.items() for word in ("--set", f"{key}={value or 'null'}")]
    return command, "quickstart", *given, *more


def test_a_profile_says_what_a_shared_link_costs(capsys):
    """The least time of all payloads; nothing where nothing is shared."""
    (slow,) = json.loads(printed(capsys, *of("profile", SLOW, "--json")))["profiles"]
    (shared,) = slow["shared"]
    assert (shared["capacity"], shared["bps"]) == ("server.uplink", 2e5)
    up = sum(slow["exchanges"][0]["up"].values())
    assert shared["at_least_s"] == pytest.approx(8 * up * shared["clients"] / 2e5)
    assert "server.uplink │ 200 kbit/s" in printed(capsys, *of("profile", SLOW))
    (fast,) = json.loads(printed(capsys, *of("profile", FAST, "--json")))["profiles"]
    assert "shared" not in fast


def test_an_explanation_tells_sharing_from_the_clients_own_links(capsys, folder):
    """Without sharing the run would be the fast one; who is slow is not the clients' links."""
    fast, slow = (edgefl.open(folder / name).runs[0] for name in ("fast", "slow"))
    found = slow.explain()
    uploads = next(one for one in found.phases if one.phase == "upload")
    assert next(iter(uploads.by_cause)) == "sharing"
    assert found.unknown_since == ["server.uplink"]
    saved = found.savings
    assert saved["unshared"] == pytest.approx(found.seconds - fast.explain().seconds)
    assert 0 < saved["server"] < saved["unshared"]
    # The server's link is always full, so that nobody's device has a say: no rounding error is shown as one.
    assert saved["device"] == 0
    assert "cells" not in saved
    out = printed(capsys, "explain", slow.folder)
    assert "upload (shared link)" in out.splitlines()[0]
    assert "server link twice as fast" in out


def test_a_replay_on_another_uplink_is_a_run_there(tmp_path, folder):
    """Row for row, on a link that another run did not have, and back."""
    for name, other, uplink in (("fast", "slow", "200 kbit/s"), ("slow", "fast", None)):
        edgefl.replay(folder / name, overrides={"server.uplink": uplink}, out=tmp_path / name)
        assert_same(tmp_path / name, folder / other)


def test_a_replay_on_a_fleet_with_cells_takes_longer(folder):
    """One cell for all clients is as slow as a server's link; twice as fast, it would save almost half."""
    cell = {"down": sourced("1 Gbit/s"), "up": sourced("200 kbit/s"), "clients": 20}
    fleet = {
        "members": [{"device": "laptop-cpu", "link": "ethernet", "cell": "home"}],
        "cells": {"home": cell},
    }
    own = {"members": [{"device": "laptop-cpu", "link": "ethernet"}]}
    (shared, alone) = edgefl.replay(folder / "fast", fleet=[fleet, own]).runs
    assert shared.summary().virtual_s > 10 * alone.summary().virtual_s
    found = shared.explain()
    saved = found.savings
    assert saved["unshared"] == pytest.approx(found.seconds - alone.explain().seconds)
    assert found.seconds / 3 < saved["cells"] < found.seconds / 2
    assert "server" not in saved
