"""What the system reports of this computer and this process."""

from __future__ import annotations

import os
import sys

import pytest

from edgefl.core import host


def test_cores_are_those_of_this_process():
    """At least one, and no more than the computer has."""
    assert 1 <= host.cores() <= (os.cpu_count() or 1)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel has no high-water mark to reset")
def test_the_high_water_mark_rises_with_memory_that_is_freed_again():
    """A mark that cannot be reset may already be higher."""
    host.forget_high_water()
    before = host.high_water_bytes()
    bytes(range(256)) * 2**18
    assert host.high_water_bytes() >= before > 0


def test_unreadable_files_report_nothing(tmp_path, monkeypatch):
    """As on other systems."""
    for name in ("_CPUINFO", "_STATUS", "_CLEAR_REFS"):
        monkeypatch.setattr(host, name, tmp_path / "none" / "file")
    host.forget_high_water()
    assert host.high_water_bytes() is None
    assert isinstance(host.processor(), str)
