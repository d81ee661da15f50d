"""What a learner knows, for a checkpoint and back from one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from edgefl.compute.job import Outcome
from edgefl.core.event import TrainingJob
from edgefl.protocol import Row, Tree, read_tree
from edgefl.runs.learner import Learner
from edgefl.runs.observing import Trained
from edgefl.store import Checkpoint, Reader, Saved, SavedFile, SavedState


def saved(learner: Learner, states: Mapping[int, SavedState]) -> Saved:
    """What a learner needs to go on.

    Outcomes that are not merged yet are part of it: an engine that stacks jobs may give other bits if it
    trained them again in other company.

    Args:
        learner: the learner.
        states: by client, those that changed since the last checkpoint; they are in files.
    """
    context, observer = learner.context, learner.observer
    servers, ahead = dict(context.versions), context.outcomes.kept
    outcomes = {number: outcome for number, (outcome, _) in ahead.items()}
    content: dict[str, Any] = {
        "live": sorted(servers),
        "ahead": [(number, began) for number, (_, began) in ahead.items()],
    }
    if observer is not None:
        content["earlier"] = {name: version for name, (version, _) in observer.earlier.items()}
        if observer.last is not None:
            last = observer.last
            servers |= last.servers
            observed = {context.outcomes.number(): outcome for outcome in last.outcomes}
            outcomes |= observed
            facts = {"servers": sorted(last.servers), "before": last.before}
            content["observed"] = {"outcomes": list(observed), **facts}
    content["counted"] = context.outcomes.number()
    packed = {number: _packed(outcome) for number, outcome in outcomes.items()}
    return Saved(servers=servers, states=states, outcomes=packed, content=content)


def restore(learner: Learner, checkpoint: Checkpoint, reader: Reader, last: Mapping[int, int]) -> None:
    """Takes a learner back to a checkpoint.

    Args:
        learner: a new one.
        checkpoint: where to.
        reader: the run.
        last: by client, the job that wrote its state.

    Raises:
        UserError: a file is missing or damaged.
    """
    context, observer, folder = learner.context, learner.observer, reader.folder
    servers = {version: context.moved(_read(folder, file)) for version, file in checkpoint.versions.items()}
    outcomes = {
        number: _unpacked(context.moved(_read(folder, file)), content)
        for number, (file, content) in checkpoint.outcomes.items()
    }
    content = checkpoint.content
    context.versions = {version: servers[version] for version in content["live"]}
    context.states.restore({client: (job, file.sha256) for client, (job, file) in checkpoint.states.items()})
    ahead = {number: (outcomes[number], began) for number, began in content["ahead"]}
    context.outcomes.restore(ahead, last, content["counted"])
    if observer is None:
        return
    observer.earlier = {
        name: (version, _rows(reader, name, version)) for name, version in content["earlier"].items()
    }
    if (observed := content.get("observed")) is not None:
        observer.last = Trained(
            [outcomes[number] for number in observed["outcomes"]],
            {version: servers[version] for version in observed["servers"]},
            observed["before"],
        )


def _read(folder: Path, file: SavedFile) -> Tree:
    return read_tree(folder / file.file, file.sha256)


def _packed(outcome: Outcome) -> tuple[Tree, dict[str, Any]]:
    """An outcome as a tree and as plain data."""
    tree = {"upload": outcome.upload} | ({} if outcome.state is None else {"state": outcome.state})
    plain = {"job": asdict(outcome.job), "scalars": dict(outcome.scalars), "finite": outcome.finite}
    return tree, plain


def _unpacked(tree: Tree, plain: Mapping[str, Any]) -> Outcome:
    return Outcome(
        TrainingJob(**plain["job"]), tree["upload"], tree.get("state"), plain["scalars"], plain["finite"]
    )


def _rows(reader: Reader, measure: str, version: int) -> list[Row]:
    """The rows of a measure, as it gave them."""
    names = ", ".join(Row._fields)
    sql = f"SELECT {names} FROM measures WHERE measure = ? AND version = ? ORDER BY rowid"  # noqa: S608 - our own names
    return [Row(**row) for row in reader.query(sql, measure, version)]
