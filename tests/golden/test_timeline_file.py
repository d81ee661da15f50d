"""A timeline's file of a run that a reader can check on paper, line by line."""

from plans import plan, prices
from recorded import recorded
from traced import as_text, read_back

from edgefl.core import catalogue
from edgefl.show.perfetto.build import write_timeline


def test_timeline_file(golden, tmp_path):
    """Two rounds of a deadline of 6 s.

    A job is a second down, its work, and a second up; c0 works 2 s and is merged, c1 works 4.5 s and is late
    with its upload; it has done half of it. Each byte a second is 8 bit/s; a second of work takes 3 J above
    1 J at idle, a transfer 1 J at idle.
    """
    table = prices(
        "train", 2, down_bps=800, up_bps=400, work_s=[2, 4.5], idle_w=1, compute_w=3, down_bytes=100,
        up_bytes=50, flops=1000, steps=10,
    )  # fmt: skip
    params = catalogue.load("policies", "deadline").Params(seconds="6 s")
    plan_ = plan([table], policy="deadline", params=params, rounds=2)
    notes = []
    with recorded(plan_, [0.5, 0.75]) as reader:
        write_timeline(reader, tmp_path / "run.pftrace", plan=plan_, note=notes.append)
    assert notes == []
    golden("timeline.txt", as_text(read_back((tmp_path / "run.pftrace").read_bytes())))
