"""A saved version of a run, read back: its predictors, and the data to check them on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgefl.core.errors import UserError
from edgefl.data.federation import Federation
from edgefl.planning.learning import DataAccess, Learning
from edgefl.planning.replanning import REPLAYED, learning_of
from edgefl.protocol import Predictor, Tree, read_tree
from edgefl.show.table import STANDS
from edgefl.store.folders import is_run, runs_in
from edgefl.store.reader import Reader, read

LAST, BEST = "last", "best"


@dataclass(frozen=True)
class TrainedVersion:
    """One saved version of a run.

    Attributes:
        meta: facts about the run, as the store keeps them.
        status: how the run stands; see ``store.reader.Reader.status``.
        models: the names of the clients' models.
        last: whether it is the run's last version, to which the clients' states belong.
        round: the round that produced it, from 0; -1 before the first.
        states: the clients' states, by client.
        reported: the accuracies that the run reported at this version, by client; None is the global model.
    """

    folder: Path
    meta: dict[str, Any]
    status: str
    models: list[str]
    version: int
    last: bool
    round: int
    learning: Learning
    server: Tree
    states: dict[int, Tree]
    reported: dict[int | None, float]

    @property
    def federation(self) -> Federation:
        return self.learning.federation

    def model(self, client: int | None) -> str:
        """The name of a client's model, or of the global one."""
        return self.models[client or 0]

    def predictor(self, client: int | None) -> Predictor:
        """A client's own model, or the global one where ``client`` is None, as the run scored it.

        Raises:
            UserError: there is none, or its state belongs to another version.
        """
        if client is None:
            global_model = self.learning.methods[0].global_model
            if global_model is None:
                raise UserError(
                    f"{self.meta['method']} has no global model",
                    where=str(self.folder),
                    hint="export a client's model with --client ID, or all of them with --all",
                )
            return global_model(self.server)
        if not 0 <= client < self.federation.clients:
            raise UserError(
                f"there is no client {client}",
                where="--client",
                hint=f"the run has clients 0 to {self.federation.clients - 1}",
            )
        if self.states and not self.last:
            raise UserError(
                f"version {self.version} is not the last, and clients' states are saved for the last only",
                where=str(self.folder),
                hint="use --version last",
            )
        method = self.learning.methods[self.learning.spec.model_of(client)]
        state = self.states.get(client)
        return method.personal_model(self.server, self._initial(client) if state is None else state)

    def standing(self, client: int | None) -> str:
        """Caveats, if any: the run did not finish, or the client has no trained state of its own."""
        caveats = []
        if self.status != "done":
            caveats.append(f"last saved state of a run that {STANDS[self.status]}")
        if client is not None and client not in self.states:
            stateless = f"the same for all clients, because {self.meta['method']} keeps no client state"
            untrained = "never trained, so its own part is the initial one"
            caveats.append(stateless if self._initial(client) is None else untrained)
        return "; ".join(caveats)

    def _initial(self, client: int) -> Tree | None:
        """The state that a client begins with; None where the method keeps none."""
        spec = self.learning.spec
        place, seed = spec.model_of(client), spec.local.first_seed(self.meta["seed"], client)
        return self.learning.methods[place].client(self.learning.nets[place].init(seed))


def trained(folder: Path, access: DataAccess, which: str = LAST) -> TrainedVersion:
    """Reads a version of a run.

    Args:
        access: how to get at its dataset; without a folder, from where the run found it.
        which: "last", "best" (by the global accuracy, or the personal one), or a version's number.

    Raises:
        UserError: the folder is not a run, or it has no such version or data, or something is damaged.
    """
    if not is_run(folder):
        runs = [str(run) for run in runs_in(folder)]
        raise UserError(f"{folder} holds {len(runs)} runs; name one", where=str(folder), hint=", ".join(runs))
    with read(folder) as reader:
        saved = {row["version"]: row for row in reader.rows("versions")}
        _check_trained(reader, saved)
        newest = "SELECT version AS last, best FROM checkpoints ORDER BY checkpoint DESC LIMIT 1"
        named = next(iter(reader.query(newest)), {LAST: None, BEST: None})
        chosen = _chosen(reader, which, saved, named)
        version, server = chosen["version"], _tree(reader, chosen)
        states = {row["client"]: _tree(reader, row) for row in reader.rows("states")}
        meta, status = reader.meta, reader.status
        models = [row["model"] for row in reader.rows("clients", "client")]
        made = reader.query("SELECT round FROM merges WHERE version = ?", version)
        reported = _reported(reader, version)
        learning = learning_of(reader, access)
    return TrainedVersion(
        folder=folder,
        meta=meta,
        status=status,
        models=models,
        version=version,
        last=version == named[LAST],
        round=made[0]["round"] if made else -1,
        learning=learning,
        server=server,
        states=states,
        reported=reported,
    )


def _check_trained(reader: Reader, saved: Mapping[int, Any]) -> None:
    if replayed := reader.meta.get(REPLAYED):
        raise UserError(
            f"{reader.folder.name} is a replay of {replayed['name']} and has no models of its own",
            where=str(reader.folder),
            hint=f"export {replayed['run_dir']}",
        )
    if reader.meta["engine"] == "null":
        raise UserError(
            f"{reader.folder.name} ran on the null engine and trained nothing", where=str(reader.folder)
        )
    if reader.status == "failed" and not saved:
        raise UserError(
            f"{reader.folder.name} failed before a version was saved, so it has no models to export: "
            f"{reader.meta.get('reason', '')}",
            where=str(reader.folder),
        )


def _chosen(
    reader: Reader, which: str, saved: Mapping[int, dict[str, Any]], named: Mapping[str, int | None]
) -> dict[str, Any]:
    """The row of a version that was saved; before any was evaluated, the last is the best."""
    version = named[which] if which in named else int(which) if which.isdecimal() else None
    if version is None and which == BEST:
        version = named[LAST]
    if version is None or version not in saved:
        known = ", ".join(f"{version}" for version in saved) or "none"
        raise UserError(
            f"version {which!r} was not saved",
            where=str(reader.folder),
            hint=f"best, last, or one of: {known}",
        )
    return saved[version]


def _tree(reader: Reader, row: Mapping[str, Any]) -> Tree:
    return read_tree(reader.folder / row["file"], row["sha256"])


def _reported(reader: Reader, version: int) -> dict[int | None, float]:
    rows = reader.query(
        "SELECT NULL AS client, accuracy FROM evaluations WHERE version = :version AND model = 'global' "
        "UNION ALL SELECT client, accuracy FROM client_evaluations WHERE version = :version",
        version=version,
    )
    return {row["client"]: row["accuracy"] for row in rows}
