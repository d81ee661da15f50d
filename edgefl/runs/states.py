"""Client states: recently used ones in memory, the others in the run's files."""

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from torch import Tensor

from edgefl.core.errors import RunError, UserError
from edgefl.protocol import Tree, nbytes, read_tree, tree_map, write_tree
from edgefl.store.checkpoints import SavedFile, state_file


class States:
    """The newest state of each client that wrote one.

    States beyond a budget move from memory to files, the least recently used first; a file is named by the
    job that wrote the state. Files never change; the next checkpoint deletes those that are replaced.
    Trees are on the CPU, and must not be modified once put or got. Not thread-safe.
    """

    def __init__(self, folder: Path = Path(), budget_bytes: float = math.inf) -> None:
        """Starts without states; the folder is the run directory's. Without a budget none goes there."""
        self._folder = folder
        self._budget_bytes = budget_bytes
        self._held: OrderedDict[int, Tree] = OrderedDict()  # the least recently used first
        self.held_bytes = 0  # of the states in memory
        self._jobs: dict[int, int] = {}
        self._changed: set[int] = set()  # the newest state came after the last checkpoint
        self._filed: dict[int, str] = {}  # the SHA-256 of the newest state's file, if it is written
        self._saving = False

    def restore(self, files: Mapping[int, tuple[int, str]]) -> None:
        """Takes over the states of a checkpoint, which are in files: by client, the job and the SHA-256."""
        self._jobs = {client: job for client, (job, _) in files.items()}
        self._filed = {client: sha256 for client, (_, sha256) in files.items()}

    def __contains__(self, client: int) -> bool:
        return client in self._jobs

    def clients(self) -> list[int]:
        """The clients that wrote a state, in order."""
        return sorted(self._jobs)

    def job(self, client: int) -> int:
        """The job that wrote a client's newest state."""
        return self._jobs[client]

    def put(self, client: int, job: int, tree: Tree) -> None:
        """Stores a client's new state; the number of the job that wrote it is unique to the state.

        Raises:
            RunError: a state that must leave memory cannot be written; no state is lost.
        """
        own = tree_map(_owned, tree)
        self._jobs[client] = job
        self._changed.add(client)
        self._filed.pop(client, None)
        self._hold(client, own)

    def get(self, client: int) -> Tree | None:
        """A client's newest state, which becomes the most recently used; None if it never wrote one.

        Raises:
            RunError: a state that must leave memory for it cannot be written, and no state is lost; or its
                file is missing or damaged.
        """
        if client in self._held:
            self._held.move_to_end(client)
            return self._held[client]
        if client not in self._filed:
            return None
        try:
            tree = read_tree(self._folder / state_file(self._jobs[client]), self._filed[client])
        except UserError as error:
            # Nobody gave us this file: the run wrote it and needs it.
            raise RunError(f"a client's state is lost: {error.what}", where=error.where) from error
        self._hold(client, tree)
        return tree

    @contextmanager
    def saving(self) -> Iterator[dict[int, tuple[int, SavedFile]]]:
        """A checkpoint: the states that changed since the last one, all in files, for ``Store.checkpoint``.

        They count as saved if the block ends without an error.

        Yields:
            By client, the states that changed, as of ``Saved``.

        Raises:
            RunError: one cannot be written; no state is lost.
        """
        for client in sorted(self._changed):
            self._file(client)
        changed = {
            client: (job := self._jobs[client], SavedFile(f"states/{state_file(job)}", self._filed[client]))
            for client in sorted(self._changed)
        }
        self._saving = True
        try:
            yield changed
        finally:
            self._saving = False
        self._changed -= {client for client, (job, _) in changed.items() if self._jobs[client] == job}
        self._shrink()

    def _file(self, client: int) -> None:
        """Writes a client's newest state, unless its file is there."""
        if client not in self._filed:
            path = self._folder / state_file(self._jobs[client])
            self._filed[client] = write_tree(path, self._held[client])

    def _hold(self, client: int, tree: Tree) -> None:
        self._release(client)
        self._held[client] = tree
        self.held_bytes += nbytes(tree)
        self._shrink()

    def _release(self, client: int) -> None:
        if client in self._held:
            self.held_bytes -= nbytes(self._held.pop(client))

    def _shrink(self) -> None:
        """Moves states to files until the budget is kept, even the last one if it is too large."""
        # A checkpoint in progress would delete a file that is not in its list of changes.
        while self.held_bytes > self._budget_bytes and not self._saving:
            client = next(iter(self._held))
            self._file(client)
            self._release(client)


def _owned(leaf: Tensor) -> Tensor:
    """A contiguous tensor, as read from a file, in memory that holds nothing else.

    Engines return views of many clients' stacked tensors, and one view keeps all of them alive.
    """
    own = leaf.detach().contiguous()
    return own.clone() if own.untyped_storage().nbytes() > own.nbytes else own
