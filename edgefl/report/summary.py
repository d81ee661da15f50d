"""What a run came to, in numbers, read from its directory."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from edgefl.core.errors import UserError
from edgefl.store import Reader, read, runs_in


def summaries(folders: list[Path], target: float | None = None) -> list[dict[str, Any]]:
    """One summary a run; a group stands for its runs.

    Args:
        folders: runs or groups.
        target: an accuracy in (0, 1]; None takes each run's own.

    Raises:
        UserError: a folder is neither, or the target is out of range.
    """
    if target is not None and not 0 < target <= 1:
        raise UserError(f"a target accuracy lies between 0 and 1, not at {target:g}", where="--target")
    found = []
    # A group and a run of it, or one folder by two names, are the same run once.
    for run in {run.resolve(): run for folder in folders for run in runs_in(folder)}.values():
        with read(run) as reader:
            found.append(summary(reader, target))
    return found


def summary(reader: Reader, target: float | None = None) -> dict[str, Any]:
    """One run's summary.

    Returns:
        name, method, dataset (None where the run does not say), models, status, reason and run_dir;
        ``accuracy`` by model with its value, the one before the exchanges at the end (``before``; the first
        of those is ``after_rounds``) and, over clients, the spread; ``assumed``, what was taken as given;
        ``virtual_s``; ``down_bytes``, ``up_bytes`` and both by part; ``flops``; ``joules``, also by phase,
        and how many clients' energy is known; ``peak_bytes``; ``host_s``; ``target`` with time, round, bytes
        and joules to it, by model, None where it was not reached.
    """
    meta = reader.meta
    target = meta["target"] if target is None else target
    totals = reader.query(
        "SELECT MAX(t_s) AS t, SUM(down_bytes) AS down, SUM(up_bytes) AS up, SUM(flops) AS flops FROM events"
    )[0]
    return {
        "name": meta["name"],
        "method": meta["method"],
        "dataset": meta.get("dataset"),
        "models": [row["model"] for row in reader.query("SELECT DISTINCT model FROM clients ORDER BY model")],
        "seed": meta["seed"],
        "run_id": meta["run_id"],
        "run_dir": str(reader.folder),
        "status": meta["status"],
        "reason": meta.get("reason", ""),
        "evaluated_on": meta["evaluated_on"],
        "accuracy": _accuracy(reader),
        "after_rounds": _after_rounds(reader),
        "assumed": meta["assumed"],
        "virtual_s": totals["t"] or 0.0,
        "down_bytes": totals["down"] or 0,
        "up_bytes": totals["up"] or 0,
        "bytes_by_part": _by_part(reader),
        "flops": totals["flops"] or 0,
        **_energy(reader),
        "peak_bytes": reader.query(
            "SELECT MAX(peak_bytes) AS most FROM prices JOIN clients USING (client) WHERE admitted"
        )[0]["most"],
        "clients": reader.query("SELECT COUNT(*) AS n FROM clients")[0]["n"],
        "refused": reader.query("SELECT COUNT(*) AS n FROM refusals")[0]["n"],
        "waited_for": _waited_for(reader),
        "host_s": meta.get("host_wall_s"),
        "target": _to_target(reader, target),
    }


def _accuracy(reader: Reader) -> dict[str, Any]:
    """The last evaluation by model, and the one before the exchanges at the end."""
    found: dict[str, Any] = {}
    rounds = reader.meta["rounds"]
    for row in reader.rows("evaluations", "version"):
        before = found.get(row["model"])
        found[row["model"]] = {
            "value": row["accuracy"],
            "before": before["value"] if before and row["round"] >= rounds else None,
            "round": row["round"],
            **{key: row[key] for key in ("spread", "clients", "untrained") if row["model"] == "personal"},
        }
    return found


def _after_rounds(reader: Reader) -> str | None:
    """The first exchange after the last round; None where there is none."""
    rows = reader.query(
        "SELECT exchange FROM merges WHERE round >= ? ORDER BY version LIMIT 1", reader.meta["rounds"]
    )
    return rows[0]["exchange"] if rows else None


def _by_part(reader: Reader) -> dict[str, dict[str, int]]:
    """Bytes by part and direction: what each job's payload holds, times the jobs that moved it."""
    parts: dict[str, dict[str, int]] = defaultdict(lambda: {"down": 0, "up": 0})
    rows = reader.query(
        "SELECT part, direction, SUM(bytes * jobs) AS total FROM payloads JOIN ("
        "  SELECT exchange, model, kind, COUNT(*) AS jobs FROM events JOIN clients USING (client)"
        "  WHERE kind IN ('received', 'arrived') GROUP BY exchange, model, kind) AS moved "
        "USING (exchange, model) WHERE kind = CASE direction WHEN 'down' THEN 'received' ELSE 'arrived' END "
        "GROUP BY part, direction ORDER BY part"
    )
    for row in rows:
        parts[row["part"]][row["direction"]] = row["total"]
    return {part: both for part, both in parts.items() if any(both.values())}


_PHASES = {"received": "receive", "worked": "compute", "arrived": "transmit"}


def _energy(reader: Reader) -> dict[str, Any]:
    """The energy of the clients whose energy is known in full, by phase, and how many those are."""
    found = reader.query(
        "SELECT COUNT(*) AS clients, TOTAL(unknown = 0) AS known, "
        "SUM(CASE unknown WHEN 0 THEN joules END) AS joules FROM ("
        "SELECT SUM(joules IS NULL) AS unknown, SUM(joules) AS joules FROM events "
        "WHERE client >= 0 AND kind != 'refused' GROUP BY client)"
    )[0]
    rows = reader.query(
        "SELECT kind, TOTAL(joules - tail_j - idle_j) AS active, TOTAL(tail_j) AS tail, "
        "TOTAL(idle_j) AS idle FROM events WHERE client IN (SELECT client FROM events GROUP BY client HAVING "
        "SUM(joules IS NULL) = 0) GROUP BY kind"
    )
    phases = {_PHASES[row["kind"]]: row["active"] for row in rows if row["kind"] in _PHASES}
    for waste in ("tail", "idle"):
        phases[waste] = sum(row[waste] for row in rows)
    return {
        "joules": found["joules"],
        "joules_by_phase": phases,
        "energy_known": int(found["known"]),
        "energy_clients": found["clients"],
    }


def _waited_for(reader: Reader) -> list[dict[str, Any]]:
    """The clients that rounds ended with, most often first."""
    return reader.query(
        "SELECT slowest_client AS client, device, slowdown, COUNT(*) AS rounds FROM merges "
        "JOIN clients ON client = slowest_client WHERE round >= 0 AND round < ? "
        "GROUP BY slowest_client ORDER BY rounds DESC, client LIMIT 3",
        reader.meta["rounds"],
    )


def _to_target(reader: Reader, target: float | None) -> dict[str, Any] | None:
    if target is None:
        return None
    found: dict[str, Any] = {"accuracy": target}
    for model in ("global", "personal"):
        rows = reader.query(
            "SELECT * FROM evaluations WHERE model = ? AND accuracy >= ? ORDER BY version LIMIT 1",
            model,
            target,
        )
        found[model] = (
            {
                "t_s": rows[0]["t_s"],
                "round": rows[0]["round"],
                "bytes": rows[0]["down_bytes"] + rows[0]["up_bytes"],
                "joules": rows[0]["joules"],
                "energy_known": rows[0]["energy_known"],
                "energy_clients": rows[0]["energy_clients"],
            }
            if rows
            else None
        )
    return found
