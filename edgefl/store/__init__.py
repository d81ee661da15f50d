"""A run on disk: ``plan.yaml``, ``run.sqlite``, ``host.json`` and safetensors files of versions and states.

Rows are committed at every merge, together with the names and SHA-256 of the files they refer to. Files are
immutable and written under a temporary name first; a file that no row refers to is deleted only after the
commit. A run that ended has the SHA-256 of each of its files: the database's is checked when it is opened,
the others' when they are read. Nothing is pickled.
"""

from edgefl.store.checkpoints import (
    Checkpoint,
    CheckpointPlace,
    Saved,
    SavedFile,
    checkpoints_of,
    state_file,
)
from edgefl.store.events import event_hash
from edgefl.store.folders import (
    claimed,
    is_group,
    is_run,
    lost_from,
    made_in,
    read_group,
    runs_in,
    write_group,
)
from edgefl.store.locks import GROUP, is_locked, locked
from edgefl.store.plans import read_plan, read_prices, read_traced
from edgefl.store.reader import (
    OtherFormatError,
    Reader,
    check_table,
    read,
)
from edgefl.store.removal import Removal, discard, removals, remove, size_of
from edgefl.store.schema import COLUMNS, TABLES
from edgefl.store.sums import content_damage, is_settled
from edgefl.store.writer import Store

__all__ = [
    "COLUMNS",
    "GROUP",
    "TABLES",
    "Checkpoint",
    "CheckpointPlace",
    "OtherFormatError",
    "Reader",
    "Removal",
    "Saved",
    "SavedFile",
    "Store",
    "check_table",
    "checkpoints_of",
    "claimed",
    "content_damage",
    "discard",
    "event_hash",
    "is_group",
    "is_locked",
    "is_run",
    "is_settled",
    "locked",
    "lost_from",
    "made_in",
    "read",
    "read_group",
    "read_plan",
    "read_prices",
    "read_traced",
    "removals",
    "remove",
    "runs_in",
    "size_of",
    "state_file",
    "write_group",
]
