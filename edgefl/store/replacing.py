"""Replaces the plan of a run that is to be longer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from edgefl.core.errors import RunError
from edgefl.core.files import atomically, on_disk, sha256_of
from edgefl.core.yamls import dump
from edgefl.store.folders import PLAN
from edgefl.store.writer import Store


def replace_plan(store: Store, resolved: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Replaces ``plan.yaml``; a kill or a power cut at any moment leaves the old plan or the new one.

    What exists only because the run was to end must be gone before: see ``Store.rewind``. Otherwise a run
    that is killed just after this would go on from there.

    Args:
        store: the run's.
        resolved: the new content.
        facts: about the run, those that follow from its plan.

    Raises:
        RunError: it cannot be written; the run has one of the two plans.
    """
    content, file = dump(resolved).encode(), store.folder / PLAN
    try:
        either = [sha256_of(file), hashlib.sha256(content).hexdigest()]
        store.set_meta({"plan_sha256": either})
        store.commit(to_disk=True)
        atomically(file, content)
        on_disk(store.folder)
        store.set_meta({**facts, "plan_sha256": either[1]})
        store.commit(to_disk=True)
    except OSError as error:
        raise RunError(f"cannot write {file}: {error.strerror or error}", where=str(file)) from error
