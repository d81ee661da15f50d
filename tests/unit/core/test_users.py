"""Tables of recorded users: what is kept of a file, how users are dealt, and what is wrong with a table."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.core.errors import ScenarioError, UserError
from edgefl.core.fleet import Fleet
from edgefl.core.users import COLUMNS, Named, Users
from edgefl.core.validation import validate
from edgefl.core.yamls import Document
from edgefl.planning.dealing import dealt, kinds

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


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Writes a table into the working directory."""
    monkeypatch.chdir(tmp_path)

    def write(text=TABLE, name="users.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return write


def fleet(text):
    """A fleet of the members above with more keys."""
    document = replace(Document.parse(MEMBERS + text, "fleet.yaml"), context=None)  # its devices are made up
    return validate(Fleet, document.data, document)


def of(rows, how="together"):
    """Users of some columns."""
    return Users(rows=rows, dealt=how)


def texts(found):
    """A dealt table's rows, one text a client."""
    columns = [getattr(found, name) for name in found.columns]
    columns = [
        np.array(one.names)[one.place] if isinstance(one, Named) else one.astype(str) for one in columns
    ]
    return [",".join(row) for row in zip(*columns, strict=True)]


def test_a_table_is_known_by_its_content(table):
    """Its name, blanks and the order of columns do not matter; the order of rows does."""
    one = Users(file=table())
    assert one.model_dump() == {"rows": KEPT, "dealt": "together"}
    assert Users.model_validate(one.model_dump()) == one == Users(file=table(KEPT + "\n", "other.csv"))
    assert (one.count, one.table().columns) == (3, COLUMNS)
    first, *rows = KEPT.splitlines()
    assert Users(file=table("\n".join([first, *rows[::-1]]), "third.csv")) != one


NUMBERS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30)


@given(NUMBERS, st.integers(1, 100), st.integers(0, 999))
def test_together_every_user_is_whole_and_has_equally_many_clients(users, clients, seed):
    """Each client is a recorded user; of two users, one has at most one client more."""
    rows = [f"{index + 0.5},{index}" for index in range(len(users))]
    found = of("\n".join(["slowdown,availability", *rows]))
    given_ = texts(found.deal(clients, seed))
    counts = [given_.count(row) for row in rows]
    assert sum(counts) == clients
    assert max(counts) - min(counts) <= 1
    assert texts(found.deal(clients + 7, seed))[:clients] == given_


def test_independently_the_columns_alone_are_kept():
    """Of as many clients as users, each column has the same values as together, and pairs are broken up."""
    rows = [f"{index + 1}.0,{index}" for index in range(200)]
    text = "\n".join(["slowdown,availability", *rows])
    whole, apart = of(text).deal(200, 5), of(text, "independently").deal(200, 5)
    assert sorted(texts(whole)) == sorted(rows)
    for column in ("slowdown", "availability"):
        np.testing.assert_array_equal(np.sort(getattr(apart, column)), np.sort(getattr(whole, column)))
    assert np.abs(np.corrcoef(apart.slowdown, apart.availability)[0, 1]) < 0.3
    assert texts(of(text).deal(200, 6)) != texts(whole)


def test_what_is_not_recorded_comes_from_a_member_with_the_device():
    """``board`` has links and types of its members by their shares; ``phone``, that no member has, of all."""
    text = json.dumps("device\n" + "\n".join(["board", "phone"] * 40))
    links = dict.fromkeys(("ethernet", "5g", "wifi"))
    found = dealt(fleet(f"users: {{rows: {text}}}").model_copy(update={"links": links}), 80, 1)
    board = np.array(found.device.names)[found.device.place] == "board"
    links = np.array(found.link.names)[found.link.place]
    assert board.sum() == 40
    assert sorted(set(zip(links[board], found.dtype.place[board].tolist(), strict=True))) == [
        ("5g", 1),
        ("ethernet", 0),
    ]
    assert (links[board] == "ethernet").sum() == 30
    assert sorted((links[~board] == name).sum() for name in ("ethernet", "5g", "wifi")) == [8, 8, 24]


def test_members_that_nobody_is_need_no_link():
    """Links of other members than those of the recorded devices are not among the fleet's."""
    own = fleet('users: {rows: "device\\nboard"}').model_copy(
        update={"links": {"ethernet": None, "5g": None}}
    )
    found = dealt(own, 4, 1)
    assert sorted(np.array(found.link.names)[found.link.place]) == ["5g", *["ethernet"] * 3]


@pytest.mark.parametrize(
    ("how", "pairs"),
    [("together", {"phone 4g", "board wifi", "board 4g"}), ("independently", {"phone wifi", "phone 4g"})],
)
def test_the_kinds_of_clients_are_the_pairs_that_can_be(how, pairs):
    """Together those of a user, each once; independently all. Types are those of members with the device."""
    found = kinds(fleet(f"users: {{rows: {json.dumps(KEPT)}, dealt: {how}}}\navailability: {AWAY}"))
    assert len(set(found)) == len(found)
    assert {f"{one.device} {one.link}" for one in found} >= pairs
    assert len({one[::2] for one in found}) == (3 if how == "together" else 4)
    assert {one.dtype for one in found if one.device == "board"} == {"fp16", "fp32"}


AWAY = '{name: intervals, rows: "0,0,1 1,0,1 2,0,1"}'


def test_users_without_a_column():
    """Of one link for all, the users' links are dropped; nothing is left of a table of links alone."""
    left = of(KEPT).without("link")
    assert left.rows.splitlines()[:2] == ["device,slowdown,availability", "phone,1.5,2"]
    assert of("link\n4g").without("link") is None


@pytest.mark.parametrize(
    ("users", "clients", "said"),
    [
        (of(KEPT), 3, "3 recorded users; device, link, slowdown and availability of one user stay together"),
        (
            of("device,link\na,b\nc,d", "independently"),
            5,
            "2 recorded users for 5 clients, in turn; device and link are dealt independently of each other",
        ),
        (of("link\n4g"), 1, "1 recorded user; link is all that is recorded"),
    ],
)
def test_it_says_how_users_are_dealt(users, clients, said):
    """How many there are, whether they are used again, and what stays together."""
    assert users.assumption(clients) == f"fleet.users: {said}"


FIRST = "the first line must name, between commas, one or more of device, link, slowdown, availability"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("", 1, FIRST),
        ("devcie,link\na,b\n", 1, FIRST),
        ("link,link\n4g,4g\n", 1, FIRST),
        ("link,\n4g,\n", 1, FIRST),
        ("link\n", 1, "there are no rows after the first line"),
        ("device,link\npi,4g\npi\n", 3, "'pi' must be device,link"),
        ("link\n4g\n4g,5g\n", 3, "'4g,5g' must be link"),
        ("device,link\npi,4g\n\npi,\n", 4, "link '': String should have at least 1"),
        ("slowdown\n1\n0\n", 3, "slowdown '0': Input should be greater than 0"),
        ("slowdown\nnan\n", 2, "slowdown 'nan': Input should be a finite number"),
        ("slowdown\n1e999\n", 2, "slowdown '1e999': Input should be a finite number"),
        ("slowdown\n-3\n", 2, "slowdown '-3': Input"),
        ("availability\n1.5\n", 2, "availability '1.5': Input should be a valid integer"),
        ("availability\n-1\n", 2, "availability '-1': Input"),
        ("availability\n\u0663\n", 2, "should be a valid integer"),
        ("availability\n100000000\n", 2, "availability '100000000': Input should be less than"),
        (f"device\n{'x' * 200_000}\n", 2, "not valid CSV: field larger than field limit"),
        ("slowdown\n" + "x" * 999 + "\n", 2, "...': Input"),
    ],
)
def test_a_bad_table_has_one_message(table, text, line, what):
    """What is wrong, and in which line of which file."""
    with pytest.raises(UserError) as caught:
        Users(file=table(text))
    assert what in caught.value.what
    assert len(caught.value.what) < 200
    assert caught.value.where.endswith(f"/users.csv:{line}")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("users: {dealt: together}", "give either 'file' or 'rows'"),
        ("users: {fil: users.csv}", "unknown key 'fil'"),
        ("users: {file: nowhere.csv}", "no file 'nowhere.csv'"),
        (
            'users: {rows: "link\\n4g", dealt: alone}',
            "dealt should be 'together' or 'independently'; got 'alone'",
        ),
        (
            'users: {rows: "slowdown\\n2"}\nslowdown: {name: lognormal, sigma: 1}',
            "remove the fleet's 'slowdown'",
        ),
        ('users: {rows: "availability\\n2"}', "a number in an intervals file, but the fleet's is 'always'"),
    ],
)
def test_what_does_not_go_with_a_table_is_refused(text, what):
    """Two files, two slowdowns, and numbers of an availability that has none."""
    with pytest.raises(ScenarioError) as caught:
        fleet(text)
    assert what in caught.value.what
