"""Tables of recorded users: what is kept of a file, how users are dealt, and what is wrong with a table."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.core.errors import ScenarioError, UserError
from edgefl.core.fleet import Fleet
from edgefl.core.users import Named, Users, UserTable
from edgefl.core.validation import validate
from edgefl.core.yamls import Document
from edgefl.planning.dealing import dealt, dealt_users, kinds

TABLE = """\
link, device, availability, slowdown
4g, phone, 2, 1.50

wifi, board, 0, 2
4g, board, 1, 1e-1
"""
KEPT = "device,link,slowdown,availability\nphone,4g,1.5,2\nboard,wifi,2.0,0\nboard,4g,0.1,1"
MEMBERS = """\
members:
  - {device: board, link: ethernet, share: 3, dtype: fp16}
  - {device: board, link: 5g}
  - {device: pad, link: wifi}
"""


def fleet(text):
    document = replace(Document.parse(MEMBERS + text, "fleet.yaml"), context=None)  # its devices are made up
    return validate(Fleet, document.data, document)


def of(rows, how="together"):
    return Users(rows=rows, dealt=how)


def texts(found):
    columns = [getattr(found, name) for name in found.columns]
    columns = [
        np.array(one.names)[one.place] if isinstance(one, Named) else one.astype(str) for one in columns
    ]
    return [",".join(row) for row in zip(*columns, strict=True)]


def test_a_table_is_known_by_its_content(own):
    """Its name, blanks and the order of columns do not matter; the order of rows does."""
    one = Users(file=str(own("users.csv", TABLE)))
    assert one.model_dump() == {"rows": KEPT, "dealt": "together"}
    assert Users.model_validate(one.model_dump()) == one == Users(file=str(own("other.csv", KEPT + "\n")))
    assert (one.count, one.table().columns) == (3, UserTable._fields)
    first, *rows = KEPT.splitlines()
    assert Users(file=str(own("third.csv", "\n".join([first, *rows[::-1]])))) != one


@given(st.integers(1, 30), st.integers(1, 100), st.integers(0, 999))
def test_together_every_user_is_whole_and_has_equally_many_clients(users, clients, seed):
    """Each client is a recorded user; of two users, one has at most one client more."""
    rows = [f"{index + 0.5},{index}" for index in range(users)]
    found = of("\n".join(["slowdown,availability", *rows]))
    given_ = texts(dealt_users(found, clients, seed))
    counts = [given_.count(row) for row in rows]
    assert sum(counts) == clients
    assert max(counts) - min(counts) <= 1
    assert texts(dealt_users(found, clients + 7, seed))[:clients] == given_


def test_independently_the_columns_alone_are_kept():
    """Of as many clients as users, each column has the same values as together, and pairs are broken up."""
    rows = [f"{index + 1}.0,{index}" for index in range(200)]
    apart = dealt_users(of("\n".join(["slowdown,availability", *rows]), "independently"), 200, 5)
    assert sorted(apart.slowdown) == list(range(1, 201))
    assert sorted(apart.availability) == list(range(200))
    assert abs(np.corrcoef(apart.slowdown, apart.availability)[0, 1]) < 0.3


def test_what_is_not_recorded_comes_from_a_member_with_the_device():
    """``board`` has links and types of its members by their shares; ``phone``, that no member has, of all."""
    text = json.dumps("device\n" + "\n".join(["board", "phone"] * 40))
    links = dict.fromkeys(("ethernet", "5g", "wifi"))
    found = dealt(fleet(f"users: {{rows: {text}}}").model_copy(update={"links": links}), 80, 1)
    board = np.array(found.device.names)[found.device.place] == "board"
    links = np.array(found.link.names)[found.link.place]
    assert board.sum() == 40
    types = sorted(set(zip(links[board], found.dtype.place[board].tolist(), strict=True)))
    assert types == [("5g", 1), ("ethernet", 0)]
    assert (links[board] == "ethernet").sum() == 30
    assert sorted((links[~board] == name).sum() for name in ("ethernet", "5g", "wifi")) == [8, 8, 24]


def test_the_kinds_of_clients_are_the_pairs_that_can_be():
    """Together those of a user, each once; independently all. Types are those of members with the device."""
    away = 'availability: {name: intervals, rows: "0,0,1 1,0,1 2,0,1"}'
    for how, count in (("together", 3), ("independently", 4)):
        found = kinds(fleet(f"users: {{rows: {json.dumps(KEPT)}, dealt: {how}}}\n{away}"))
        assert len(set(found)) == len(found)
        assert len({one[::2] for one in found}) == count
        assert {one.dtype for one in found if one.device == "board"} == {"fp16", "fp32"}
        pairs = {f"{one.device} {one.link}" for one in found}
        assert ("phone 4g" in pairs, "phone wifi" in pairs) == (True, how == "independently")


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("", 1, "the first line must name, between commas, one or more of device, link, slowdown, avail"),
        ("device,link\npi,4g\n\npi,\n", 4, "link '': String should have at least 1"),
        ("availability\n100000000\n", 2, "availability '100000000': Input should be less than"),
        ("slowdown\n" + "x" * 999 + "\n", 2, "...': Input"),
    ],
)
def test_a_bad_table_has_one_message(own, text, line, what):
    with pytest.raises(UserError) as caught:
        Users(file=str(own("users.csv", text)))
    assert what in caught.value.what
    assert len(caught.value.what) < 200
    assert caught.value.where.endswith(f"/users.csv:{line}")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('users: {rows: "slowdown\\n2"}\nslowdown: {name: fixed, value: 2}', "remove the fleet's 'slowdown'"),
        ('users: {rows: "availability\\n2"}', "needs intervals, but the fleet's is 'always'"),
    ],
)
def test_what_does_not_go_with_a_table_is_refused(text, what):
    with pytest.raises(ScenarioError) as caught:
        fleet(text)
    assert what in caught.value.what
