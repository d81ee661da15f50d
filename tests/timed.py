"""What a report page is given of one run's time: the blocks of its frames, columns together."""

from __future__ import annotations

from types import SimpleNamespace

from edgefl.analysis.run import Run
from edgefl.analysis.summary import summary
from edgefl.show.page.records import Read
from edgefl.show.page.sections import activity, rounds

OF = {"rounds": "round", "jobs": "job", "receiving": "receive", "work": "work", "transmission": "transmit"}


def timed(reader, most_jobs=10**6, **summed) -> SimpleNamespace:
    """Durations by device and what; steps, mean and most; staleness; who took part; merges."""
    one = SimpleNamespace(**summed) if summed else summary(reader)
    read = Read(Run(reader), one, 0, most_jobs)
    busy = activity.read(read)
    active = {block["of"]: block for block in busy if "clients" in block}
    stale = {block["of"]: block for block in busy if "behind" in block}
    return SimpleNamespace(
        durations={(one["device"], OF[one["of"]]): SimpleNamespace(**one) for one in rounds.took(read)},
        active={of: (block["t_s"], block["clients"]) for of, block in active.items()},
        stale={of: (block["t_s"], block["behind"]) for of, block in stale.items()},
        participation=[SimpleNamespace(**one) for one in activity.took_part(read)],
        rounds=[SimpleNamespace(**one) for one in rounds.read(read)],
    )
