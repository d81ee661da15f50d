"""The list of a group's runs."""

from __future__ import annotations

import pytest

from edgefl.core.errors import UserError
from edgefl.store import read_group, write_group


def test_a_flipped_bit_of_a_list_is_noticed(tmp_path):
    """Whichever it is: a run of another name would be left out of a resume without a word."""
    listed = "sweep", ["01-seed-1", "02-seed-2"]
    write_group(tmp_path, *listed)
    assert read_group(tmp_path) == listed
    path = tmp_path / "group.json"
    content = path.read_bytes()
    for place in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(UserError, match=r"group\.json is damaged"):
            read_group(tmp_path)
