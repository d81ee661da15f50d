"""Fleets of recorded users, from the plan to a run that is saved, resumed and replayed."""

import numpy as np
import pytest
from interrupted import interrupted
from replayed import SMALL
from resumed import same_runs

import edgefl
from edgefl.core.errors import UserError
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs.group import drafts
from edgefl.store.plans import read_plan
from edgefl.store.reader import read

USERS = ["raspberry-pi-4b,wifi-pi4,2", "laptop-cpu,ethernet,0", "laptop-cpu,wifi-pi5,1"]
ROWS = "\n".join(["device,link,availability", *USERS])
TIMES = {"name": "intervals", "rows": "0,0,500 1,10,500 2,0,0.02 2,1,400", "repeat": "500 s"}
FLEET = {"like": "home-lab", "users": {"rows": ROWS}, "availability": TIMES}
SAID = "fleet.users: 3 recorded users for 8 clients, in turn; device, link and availability of one user"


def planned(fleet=FLEET, **changes):
    """The plan of a small scenario on a fleet."""
    (draft,) = drafts({**SMALL, "fleet": fleet, **changes})
    return plan(draft, DataAccess(need="embedded"))


def whose(clients):
    """Each client's row of the table."""
    columns = zip(clients.device, clients.link, clients.user, strict=True)
    return [f"{clients.devices[device]},{clients.links[link]},{user}" for device, link, user in columns]


def test_clients_are_the_users_and_the_plan_says_so():
    """Together every client is a row, and the plan has devices and links of those alone; else it is not."""
    together = planned()
    assert set(whose(together.plan.clients)) == set(USERS)
    assert f"{SAID} stay together" in together.plan.assumed
    assert together.resolved["devices"].keys() == {"raspberry-pi-4b", "laptop-cpu"}
    assert together.resolved["fleet"]["links"].keys() == {"wifi-pi4", "ethernet", "wifi-pi5"}
    apart = planned({**FLEET, "users": {"rows": ROWS, "dealt": "independently"}})
    assert not set(whose(apart.plan.clients)) <= set(USERS)
    for column in ("device", "link", "user"):
        assert len(set(getattr(apart.plan.clients, column).tolist())) > 1
    said = "fleet.users: 3 recorded users for 8 clients, in turn; device, link and availability"
    assert f"{said} are dealt independently of each other" in apart.plan.assumed
    assert apart.run_id != together.run_id


def test_names_are_spelled_as_their_files_are():
    other = ROWS.replace("laptop-cpu", "Laptop-CPU").replace("wifi-pi5", "WiFi-Pi5")
    assert set(whose(planned({**FLEET, "users": {"rows": other}}).plan.clients)) == set(USERS)


def test_availability_is_that_of_the_users_number():
    """A table of the clients' own numbers changes nothing; otherwise a client has the times of its user."""
    numbers = [7, 3, 3, 0, 1, 2, 0, 5]
    rows = "\n".join(["availability", *map(str, numbers)])
    rows_of_numbers = " ".join(f"{number},{number},{number + 1}" for number in range(8))
    times = {"name": "intervals", "rows": rows_of_numbers}
    found = planned({"like": "home-lab", "availability": times, "users": {"rows": rows}}).plan
    plain = planned({"like": "home-lab", "availability": times}).plan
    assert sorted(found.clients.user.tolist()) == sorted(numbers)
    mine, own = (one.fleet.availability.timetable(one.clients, 7) for one in (found, plain))
    t_s = np.repeat(np.arange(9) + 0.5, 8)
    everyone = np.tile(np.arange(8), 9)
    for one, other in zip(mine.at(everyone, t_s), own.at(found.clients.user[everyone], t_s), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("change", "what", "hint"),
    [
        (("laptop-cpu,e", "laptop-cup,e"), "unknown device 'laptop-cup'", "did you mean 'laptop-cpu'?"),
        (("wifi-pi5", "wifi-pi6"), "unknown link 'wifi-pi6'", "did you mean 'wifi-pi5'?"),
        (("ethernet,0", "ethernet,9"), "availability 9 is not in the intervals file", ""),
    ],
)
def test_a_name_that_nothing_has_names_its_file(tmp_path, monkeypatch, change, what, hint):
    """In a scenario's fleet and in a profile's, with the nearest name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "users.csv").write_text(ROWS.replace(*change), encoding="utf-8")
    (tmp_path / "profiles").mkdir()
    text = 'like: home-lab\nusers: {file: users.csv}\navailability: {name: intervals, rows: "%s"}\n'
    (tmp_path / "profiles" / "mine.yaml").write_text(text % TIMES["rows"], encoding="utf-8")
    for fleet in ({**FLEET, "users": {"file": "users.csv"}}, "mine"):
        with pytest.raises(UserError) as caught:
            planned(fleet)
        assert caught.value.what.startswith(what)
        assert caught.value.where.endswith("users.csv")
        assert caught.value.hint == hint


def test_a_run_is_saved_resumed_and_read_back(tmp_path, monkeypatch):
    """plan.yaml has the table: a killed run needs no file, and its clients and notes are the same."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "users.csv").write_text(ROWS, encoding="utf-8")
    settings = {**SMALL, "fleet": {**FLEET, "users": {"file": "users.csv"}}}
    whole, copies = interrupted(settings, tmp_path, most=2, engine="null")
    (tmp_path / "users.csv").unlink()
    for copy in copies.kept:
        same_runs(whole, edgefl.resume(copy).runs[0].folder)
    with read(whole) as reader:
        found, clients = read_plan(reader), planned().plan.clients
        assert found.fleet.users.rows == ROWS
        assert reader.meta["run_id"] == planned().run_id
        assert f"{SAID} stay together" in reader.meta["assumed"]
        assert whose(found.clients) == whose(clients)
