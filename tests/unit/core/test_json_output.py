"""What ``--json`` prints: one whole document or nothing."""

from __future__ import annotations

import pytest

from edgefl.cli.console import print_json


def test_what_is_no_json_leaves_stdout_empty(capsys):
    """A partial document would fail to parse, far from the cause."""
    with pytest.raises(TypeError):
        print_json({"a": 1, "b": object()})
    assert capsys.readouterr().out == ""
    print_json({"a": 1})
    assert capsys.readouterr().out == '{\n  "a": 1\n}\n'
