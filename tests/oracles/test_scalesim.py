"""SCALE-Sim 3.0.0 as an oracle for a systolic array's cycles, stalls and DRAM traffic.

Its total is the index of the last cycle: one less than the cycles, plus its stalls. ``scalesim.csv`` says how
its rows were made.
"""

import csv
from math import ceil, inf
from pathlib import Path
from types import SimpleNamespace

import pytest

from edgefl.core.cost import Product
from edgefl.core.devices.systolic import cycles, kept_words, operands

KWORD = 1024


def traffic(dataflow: str, rows: int, columns: int, gemm: Product) -> list[int]:
    """The words of each operand that DRAM moves if nothing is kept."""
    return [one.words * one.times for one in operands(dataflow, rows, columns, gemm)]


def read(row: dict[str, str]) -> SimpleNamespace:
    """One layer on one array; the memory is simulated under "USER" alone."""
    simulated = row["bw_mode"] == "USER"
    return SimpleNamespace(
        name=f"{row['layer']} {row['dataflow']} {row['array']} {row['bw_mode']} {row['sram_kwords']}",
        gemm=Product(*(int(row[side]) for side in "MNK")),
        image=row["input"] == "conv",
        dataflow=row["dataflow"],
        rows=int(row["array"].split("x")[0]),
        columns=int(row["array"].split("x")[1]),
        simulates_memory=simulated,
        kwords=int(row["sram_kwords"].split("/")[0]),
        words_per_cycle=int(row["dram_words_per_cycle_per_port"]) if simulated else 0,
        total=int(row["scalesim_total_cycles"]),
        stalls=int(row["stall_cycles"]),
        reads=(int(row["ifmap_dram_reads"]), int(row["filter_dram_reads"])),
        writes=int(row["ofmap_dram_writes"]),
    )


LINES = (Path(__file__).parent / "scalesim.csv").read_text().splitlines()
ROWS = [read(row) for row in csv.DictReader(line for line in LINES if not line.startswith("#"))]


def test_the_file_is_whole():
    """24 rows of a survey, 3 with small memories, 54 random ones: each dataflow about a third of them."""
    assert len(ROWS) == 24 + 3 + 54
    assert [sum(row.dataflow == flow for row in ROWS) for flow in ("os", "ws", "is")] == [29, 26, 26]
    assert sum(row.stalls > 0 for row in ROWS) == 15


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_cycles_are_those_of_scalesim(row):
    """Ours - 1 + its stalls = its total, to the cycle."""
    assert cycles(row.dataflow, row.rows, row.columns, row.gemm) - 1 + row.stalls == row.total


@pytest.mark.parametrize("row", [row for row in ROWS if not row.simulates_memory], ids=lambda row: row.name)
def test_operands_are_read_once_and_partial_sums_written_once_a_fold(row):
    """Without a memory in the way: m*k and k*n words, and m*n times the folds along k.

    SCALE-Sim's counter of writes lacks up to 16 words of one line, and it does not count reading sums back,
    which the accumulation of all but the first needs.
    """
    m, n, k, *_ = row.gemm
    if not row.image:
        assert row.reads == (m * k, k * n)
        assert kept_words(row.dataflow, row.rows, row.columns, row.gemm, inf) == sum(row.reads) + m * n
    folds = 1 if row.dataflow == "os" else ceil(k / row.rows)
    assert row.writes == pytest.approx(m * n * folds, abs=16)
    assert traffic(row.dataflow, row.rows, row.columns, row.gemm)[2] == m * n * (2 * folds - 1)


@pytest.mark.parametrize(
    ("kwords", "words_per_cycle", "total"), [(1, 1, 203_223), (8, 2, 77_609), (8, 10, 15_365)]
)
def test_the_memory_roof(kwords, words_per_cycle, total):
    """GEMM 64 x 100 x 512 on 32 x 64, output stationary: the roof is half to all of SCALE-Sim's cycles.

    max(2424 cycles, 102,400 words of the larger operand with refetch / words a cycle): 102,400, 51,200 and
    10,240 cycles. SCALE-Sim's double-buffered prefetch fetches an operand up to twice as often.
    """
    gemm = Product(64, 100, 512)
    (row,) = (
        row
        for row in ROWS
        if (row.gemm, row.dataflow, row.kwords, row.words_per_cycle) == (gemm, "os", kwords, words_per_cycle)
    )
    assert row.total == total
    spent, largest = cycles("os", 32, 64, gemm), max(traffic("os", 32, 64, gemm))
    assert (spent, largest) == (2424, 102_400)
    # Half of a buffer is active in SCALE-Sim, and that holds no operand's block.
    assert kept_words("os", 32, 64, gemm, kwords * KWORD / 2) == sum(traffic("os", 32, 64, gemm))
    assert 0.5 <= max(spent, largest / words_per_cycle) / total <= 1.0


def test_formulas_of_dram_traffic_on_paper():
    """What streams past comes again for every fold across it; sums go out and back for every fold along k.

    64 x 100 x 512 on 32 x 64. os: 32,768*2 + 51,200*2 + 6,400 = 174,336. ws: 32,768*2 + 51,200 + 6,400*31
    (16 writes and 15 reads of every sum) = 315,136. is: 32,768 + 51,200*1 + 6,400*31 = 282,368.
    """
    gemm = Product(64, 100, 512)
    assert sum(traffic("os", 32, 64, gemm)) == 174_336
    assert sum(traffic("ws", 32, 64, gemm)) == 315_136
    assert sum(traffic("is", 32, 64, gemm)) == 282_368
    assert kept_words("os", 32, 64, gemm, inf) == 32_768 + 51_200 + 6_400 == 90_368


def test_what_on_chip_memory_keeps_on_paper():
    """64 x 100 x 512 on 32 x 64, output stationary; the blocks are 32*512 = 16,384 and 512*64 = 32,768 words.

    Under 16,384 words nothing stays: 174,336. From there the left block stays while its folds pass, and the
    left operand comes once: 141,568. From 32,768 the right operand's block stays: 123,136 words. With the
    left block and all of the right, 16,384 + 51,200 words, or the reverse, 65,536: each comes once, 90,368.
    """
    gemm = Product(64, 100, 512)
    found = [
        kept_words("os", 32, 64, gemm, room) for room in (16_383, 16_384, 32_767, 32_768, 65_535, 65_536)
    ]
    assert found == [174_336, 141_568, 141_568, 123_136, 123_136, 90_368]
    # Weight stationary: sums of 64 x 64 stay first (saving 6,400*30), then inputs' columns of 64 x 32 too.
    assert [kept_words("ws", 32, 64, gemm, room) for room in (2_047, 2_048, 4_096, 8_448)] == [
        315_136,
        282_368,
        123_136,
        90_368,
    ]
