"""FedAsync and FedBuff on timelines that a reader can check on paper; see ``told`` for how to read a line.

A client of ``times(work=[...])`` receives for 1 s, works for so many seconds and sends for 1 s.
"""

import pytest
from told import times, told


def test_fedasync():
    """c0 takes 3 s, c1 5 s and c2 8 s; each arrival is merged at once, and its client asked again.

    alpha = 0.6 and s(d) = (1 + d) ** -1/2: 0.6, 0.4243 and 0.3464 for 0, 1 and 2 versions.

    3 s: c0, fresh. 5 s: c1, who began before c0's merge: d = 1. 6 s: c0 again, from version 1: d = 1. 8 s:
    c2, whose version 0 is 3 versions old: 0.3. 9 s: c0 from version 3, before c2's merge: d = 1.
    """
    found = told(times(work=[1, 3, 6]), "fedasync", rounds=5, samples=[10, 20, 30])
    assert found.jobs == [
        "c0 of 0: 0 1 2 3, merged 1 at 3",
        "c1 of 0: 0 1 4 5, merged 2 at 5",
        "c2 of 0: 0 1 7 8, merged 4 at 8",
        "c0 of 1: 3 4 5 6, merged 3 at 6",
        "c1 of 2: 5 6 9 -, cut at 9",
        "c0 of 3: 6 7 8 9, merged 5 at 9",
        "c2 of 4: 8 9 - -, cut at 9",
    ]
    assert found.merges == [
        "3: 1 = c0 x0.6 w10 (mix)",
        "5: 2 = c1 d1 x0.4243 w20 (mix)",
        "6: 3 = c0 d1 x0.4243 w10 (mix)",
        "8: 4 = c2 d3 x0.3 w30 (mix)",
        "9: 5 = c0 d1 x0.4243 w10 (mix)",
    ]
    assert found.scores == ["3: 1", "5: 2", "6: 3", "8: 4", "9: 5"]


@pytest.mark.parametrize(
    ("staleness", "scales"),
    [
        ({"shape": "constant"}, [0.5, 0.5, 0.5, 0.5, 0.5]),
        ({"shape": "polynomial", "a": 1}, [0.5, 0.25, 0.25, 0.125, 0.25]),
        # 1 up to 1 version, then 1 / (2 (d - 1) + 1): a fifth at d = 3.
        ({"shape": "hinge", "a": 2, "b": 1}, [0.5, 0.5, 0.5, 0.1, 0.5]),
    ],
)
def test_what_stale_updates_count_in_fedasync(staleness, scales):
    """The timeline above, whose merges are 0, 1, 1, 3 and 1 versions stale, at alpha = 0.5."""
    found = told(times(work=[1, 3, 6]), "fedasync", {"alpha": 0.5, "staleness": staleness}, rounds=5)
    clients = ["c0", "c1 d1", "c0 d1", "c2 d3", "c0 d1"]
    assert [merge.split(" = ")[1] for merge in found.merges] == [
        f"{client} x{scale:g} w1 (mix)" for client, scale in zip(clients, scales, strict=True)
    ]


def test_too_stale_updates_are_dropped():
    """The timeline above with at most 2 versions: c2's update, 3 behind, is late and no merge.

    c2 starts again at 8 s from version 3, and c0's update at 9 s began at version 3 too: it is fresh.
    """
    found = told(times(work=[1, 3, 6]), "fedasync", {"most_stale": 2}, rounds=4)
    assert found.jobs == [
        "c0 of 0: 0 1 2 3, merged 1 at 3",
        "c1 of 0: 0 1 4 5, merged 2 at 5",
        "c2 of 0: 0 1 7 8, late at 8",
        "c0 of 1: 3 4 5 6, merged 3 at 6",
        "c1 of 2: 5 6 9 -, cut at 9",
        "c0 of 3: 6 7 8 9, merged 4 at 9",
        "c2 of 3: 8 9 - -, cut at 9",
    ]
    assert found.merges[-1] == "9: 4 = c0 x0.6 w1 (mix)"


def test_fedbuff():
    """Four clients, two at work at a time, two updates in a merge; who is free longest is asked.

    c0 takes 3 s, c1 5 s, c2 4 s and c3 8 s. c0 and c1 begin. 3 s: c0 is in the buffer, and c2 is asked, still
    from version 0. 5 s: c1 fills the buffer: version 1, and c3 is asked. 7 s: c2, 1 behind; c0 is asked,
    again from version 1. 10 s: c0, fresh, fills the buffer: version 2, with c2's update at 2 ** -1/2. c1 is
    asked then. 13 s: c3, 1 behind; c2 is asked. 15 s: c1, fresh, fills the buffer: version 3.
    """
    found = told(
        times(work=[1, 3, 2, 6]),
        "fedbuff",
        {"buffer": 2, "concurrency": 2},
        rounds=3,
        selector="round-robin",
        samples=[10, 20, 30, 40],
    )
    assert found.jobs == [
        "c0 of 0: 0 1 2 3, merged 1 at 5",
        "c1 of 0: 0 1 4 5, merged 1 at 5",
        "c2 of 0: 3 4 6 7, merged 2 at 10",
        "c3 of 1: 5 6 12 13, merged 3 at 15",
        "c0 of 1: 7 8 9 10, merged 2 at 10",
        "c1 of 2: 10 11 14 15, merged 3 at 15",
        "c2 of 2: 13 14 - -, cut at 15",
    ]
    assert found.merges == [
        "5: 1 = c0 x1 w1, c1 x1 w1 (move)",
        "10: 2 = c0 x1 w1, c2 d1 x0.7071 w1 (move)",
        "15: 3 = c1 x1 w1, c3 d1 x0.7071 w1 (move)",
    ]
    assert found.scores == ["5: 1", "10: 2", "15: 3"]


def test_fedbuff_with_a_servers_rate_and_samples_as_weights():
    """All of three at work, of whom two updates make a merge; eta = 0.5 scales all of them, weights do not.

    3 s: c0. 5 s: c1 fills the buffer. 6 s: c0 of version 0, 1 behind. 8 s: c2 of version 0, 1 behind.
    """
    settings = {"buffer": 2, "server_rate": 0.5, "weights": "samples", "staleness": {"a": 1}}
    found = told(times(work=[1, 3, 6]), "fedbuff", settings, rounds=2, samples=[10, 20, 30])
    assert found.jobs == [
        "c0 of 0: 0 1 2 3, merged 1 at 5",
        "c1 of 0: 0 1 4 5, merged 1 at 5",
        "c2 of 0: 0 1 7 8, merged 2 at 8",
        "c0 of 0: 3 4 5 6, merged 2 at 8",
        "c1 of 1: 5 6 - -, cut at 8",
        "c0 of 1: 6 7 8 -, cut at 8",
    ]
    assert found.merges == [
        "5: 1 = c0 x0.5 w10, c1 x0.5 w20 (move)",
        "8: 2 = c0 d1 x0.25 w10, c2 d1 x0.25 w30 (move)",
    ]


def test_too_stale_updates_do_not_fill_the_buffer():
    """One update a merge, of c0 every 3 s: c1's, after 11 s, is 3 behind; 2 are allowed.

    At 12 s c0's next update is merged, and c1 has begun again at 11 s, from version 3.
    """
    found = told(times(work=[1, 9]), "fedbuff", {"buffer": 1, "most_stale": 2}, rounds=4)
    assert found.jobs == [
        "c0 of 0: 0 1 2 3, merged 1 at 3",
        "c1 of 0: 0 1 10 11, late at 11",
        "c0 of 1: 3 4 5 6, merged 2 at 6",
        "c0 of 2: 6 7 8 9, merged 3 at 9",
        "c0 of 3: 9 10 11 12, merged 4 at 12",
        "c1 of 3: 11 12 - -, cut at 12",
    ]
    assert [merge.split(":")[0] for merge in found.merges] == ["3", "6", "9", "12"]
