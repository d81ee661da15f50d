"""The page that `edgefl run --watch` serves, in a browser, while a run goes on."""

from __future__ import annotations

from seen import faults
from visits import visiting
from watched import watched

from edgefl.show.page import following

POINTS = "() => edgefl.state.page.plots[0].frame.blocks[0].accuracy.length"


def test_a_page_follows_a_run(opened, tmp_path, monkeypatch):
    """Accuracies are added, a switch stays as it was set, the end is told; nobody else is asked."""
    monkeypatch.setattr(following, "_REST", 0)
    with watched(tmp_path / "run") as run:
        run.go_on()
        with visiting(opened, run.server.url, online=True) as visit:
            visit.ready()
            visit.draw_all()
            visit.page.check("#plot-accuracy input[name=accuracy-x][value=round]")
            assert visit.page.evaluate(POINTS) == 1
            assert faults(visit) == []
            run.go_on(2)
            visit.page.wait_for_function(f"{POINTS} === 2", timeout=30_000)
            assert 2 in [len(one["x"]) for one in visit.drawn("accuracy")["data"]]
            run.end()
            run.server.follower.over()
            visit.page.get_by_text("The runs have ended").wait_for(timeout=30_000)
            assert visit.page.evaluate(POINTS) == 4
            assert faults(visit) == []
            assert visit.page.is_checked("#plot-accuracy input[name=accuracy-x][value=round]")
            assert visit.complaints == []
            assert {one for one in visit.requests if not one.startswith(("blob:", "data:"))} == {
                run.server.url,
                f"{run.server.url}data",
            }
