"""A run on disk: ``plan.yaml``, ``run.sqlite``, ``host.json`` and safetensors files of versions and states.

Rows are committed at every merge, together with the names of the files they refer to. Files are immutable
and written under a temporary name first; a file that no row refers to is deleted only after the commit.
Nothing is pickled.
"""

from edgefl.store.plans import read_plan
from edgefl.store.reader import Reader, fresh_folder, is_run, read, runs_in
from edgefl.store.schema import TABLES
from edgefl.store.writer import Store, state_file

__all__ = [
    "TABLES",
    "Reader",
    "Store",
    "fresh_folder",
    "is_run",
    "read",
    "read_plan",
    "runs_in",
    "state_file",
]
