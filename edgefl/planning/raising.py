"""Limits of a run that has begun, raised: the same run, and more of it."""

from collections.abc import Sequence
from dataclasses import replace

from edgefl.core.errors import Mistakes, ScenarioError, UserError
from edgefl.core.overrides import Override, put
from edgefl.core.scenario import Server, Until
from edgefl.core.validation import validate
from edgefl.core.yamls import Document
from edgefl.planning.plan import Planned, assigned, check_whole

_UNTIL = ["server", "until"]
_UNITS = {"time": " s", "bytes": " B", "energy": " J"}
# Of a run of many rounds, so many are looked at.
_LOOKED_AT = 1000


def raised(planned: Planned, settings: Sequence[Override]) -> Planned:
    """A run with larger limits, which begins as it did: planned as a new run with these limits would be.

    Settings are of ``server.until``, also by the short form ``server.rounds``; a limit set to null is
    removed. If no limit changes, the same object is returned.

    Raises:
        UserError: another setting is among them, a limit would be lower or is new, none that ends the run
            would be left, what was done depends on the number of rounds, or a value is wrong.
    """
    scenario, resolved = planned.plan.scenario, planned.resolved
    before, mistakes = scenario.server.until, Mistakes()
    values = before.model_dump(exclude_none=True)
    texts = {key: f"{value!r}{_UNITS[key]}" if key in _UNITS else value for key, value in values.items()}
    document = Document.of({"server": {"until": texts}}, scenario.name)
    for setting in settings:
        with mistakes.collected():
            document = put(document, _keys(setting), setting.value)
    mistakes.check()
    until = validate(Until, document.data["server"]["until"], document, _UNTIL)
    if until == before:
        return planned
    _check_raised(before, until, document)
    with document.placing():
        if until.rounds != before.rounds:
            _check_rounds(planned, until.rounds, document.place([*_UNTIL, "rounds"]))
        server = scenario.server.model_copy(update={"until": until})
        plan = replace(planned.plan, scenario=scenario.model_copy(update={"server": server}))
        check_whole(plan)
    limits = until.model_dump(mode="json", exclude_none=True)
    of_server = {**resolved["scenario"]["server"], "until": limits}
    changed = {**resolved, "scenario": {**resolved["scenario"], "server": of_server}}
    return replace(planned, plan=plan, resolved=changed)


def _keys(setting: Override) -> list[str]:
    """The keys of a limit, in its long form."""
    keys = setting.keys
    if keys[0] == "server" and ".".join(keys[1:]) in Server.SHORT_FORMS:
        keys = ["server", *Server.SHORT_FORMS[".".join(keys[1:])].split(".")]
    if keys[:2] != _UNTIL:
        raise UserError(
            f"{setting.key!r} cannot be changed when a run is resumed",
            where=setting.value.place(),
            hint="server.until, engine and checkpoint.minutes can; for anything else run the scenario again",
        )
    return keys


def _check_raised(before: Until, until: Until, document: Document) -> None:
    """Refuses limits that are lower than they were, and new ones."""
    mistakes = Mistakes()
    for key in Until.model_fields:
        old, new, name = getattr(before, key), getattr(until, key), f"server.until.{key}"
        if new is None or (old is not None and new >= old):
            continue
        if old is None:
            what, hint = f"the run has no {name} to raise", "to add a limit, run the scenario again with it"
        else:
            shown = f"{old:.15g}{_UNITS.get(key, '')}"
            what = f"{name} can only be raised, and it is {shown}"
            hint = f"give more than {shown}, or null for no limit; for less run the scenario again"
        mistakes.add(UserError(what, where=document.place([*_UNTIL, key]), hint=hint))
    mistakes.check()


def _check_rounds(planned: Planned, rounds: int | None, where: str) -> None:
    """Refuses another number of rounds where what jobs were given would have been different with it."""
    scenario = planned.plan.scenario
    before, schedule = scenario.server.until.rounds, scenario.local.optimizer.schedule
    places = range(0, before or 0, max(1, (before or 0) // _LOOKED_AT))
    if (rounds is None and schedule.NEEDS_ROUNDS) or any(
        schedule.factor(place, before or 0) != schedule.factor(place, rounds or 0) for place in places
    ):
        who = f"the schedule {schedule.name!r}"
    elif any(_differ(planned, place, before, rounds) for place in places):
        who = f"the method {scenario.method.name!r}"
    else:
        return
    raise UserError(
        f"{who} depends on the number of rounds, which was {before}",
        where=where,
        hint="raise another limit, or run the scenario again with more rounds",
    )


def _differ(planned: Planned, round_: int, *rounds: int | None) -> bool:
    """Whether jobs of a round are given something else in a run of another number of rounds."""
    try:
        one, other = (assigned(planned.learning, planned.plan.fleet, each, round_) for each in rounds)
    except ScenarioError:
        # Of an endless run it cannot be said.
        return True
    return one != other
