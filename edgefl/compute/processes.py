"""Worker processes on this machine, one thread each."""

from __future__ import annotations

import pickle
import subprocess
import weakref
from queue import Empty, Queue
from threading import Thread
from typing import Any, NamedTuple

import psutil

from edgefl.compute import silence
from edgefl.compute.folders import removed
from edgefl.compute.job import Trainer
from edgefl.compute.remote import BuilderSpec, Died, Done, Failed, Order, Refused
from edgefl.compute.tensor_store import TensorFile, TensorStore, shared_folders
from edgefl.compute.worker import Answer, Setup, main
from edgefl.core import fresh

# How long a worker may take from its last answer to its end.
LEAVING_S = 5.0


class Stopped(NamedTuple):
    """In place of an answer: the worker was stopped for too long."""


class Processes:
    """A pool of processes, started at once; trees lie in shared memory.

    Attributes:
        workers: how many.
        shares_files: they can read the driver's files.
    """

    shares_files = True

    def __init__(self, spec: BuilderSpec, trainer: Trainer, workers: int) -> None:
        self.workers = workers
        size = sum(leaf.numel() * leaf.element_size() for leaf in spec.tensors.values())
        folders = shared_folders(size)
        # Also when the driver forgets to close, or is interrupted.
        self._remove = weakref.finalize(self, removed, folders)
        self._store = TensorStore(folders, "driver")
        self._tensors = self._store.put(dict(spec.tensors))
        self._spec = spec
        self._trainer = trainer
        self._answers: Queue[tuple[int, subprocess.Popen[bytes], Answer | str | Stopped]] = Queue()
        self._silence = silence.Silence()
        self._started = 0
        self._processes = [self._start(number) for number in range(workers)]

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        self._started += 1
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            fresh.command(main),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=fresh.environment(1),
            # Ctrl-C is the driver's business, also while a worker is starting.
            process_group=0,
        )
        build, settings = self._spec.build, self._spec.settings
        name = f"worker{self._started}"
        setup = Setup(name, self._store.folders, build, settings, self._tensors, self._trainer)
        _write(process, setup)
        Thread(target=self._listen, args=(number, process), daemon=True).start()
        return process

    def _listen(self, number: int, process: subprocess.Popen[bytes]) -> None:
        """Passes a worker's answers on, and finally why there are no more."""
        assert process.stdout is not None  # noqa: S101 - it was opened as a pipe
        while True:
            try:
                answer = pickle.load(process.stdout)  # noqa: S301 - from our own worker
            except Exception as error:  # noqa: BLE001 - at its end, or if unreadable: it is gone in either case
                why = f"its answer cannot be read: {type(error).__name__}: {error}"
                self._answers.put((number, process, why))
                return
            self._answers.put((number, process, answer))

    def put(self, tree: Any) -> TensorFile:
        """Places a tree in shared memory."""
        return self._store.put(tree)

    def drop(self, ref: TensorFile) -> None:
        """Deletes a tree's file; readers keep what they have read."""
        self._store.drop(ref)

    def send(self, worker: int, order: Order[TensorFile]) -> None:
        """Gives an idle worker an order; that it died shows in ``receive``."""
        _write(self._processes[worker], order)

    def receive(self) -> tuple[int, Done | Failed | Refused | Died]:
        """Waits for the next answer of any worker."""
        while True:
            try:
                number, process, answer = self._answers.get(timeout=silence.LOOK_S)
            except Empty:
                self._look()
                continue
            if process is not self._processes[number]:
                continue
            if isinstance(answer, str | Stopped):
                how = silence.given_up() if isinstance(answer, Stopped) else _ending(process, answer)
                _end(process)
                self._processes[number] = self._start(number)
                return number, Died(how)
            if not isinstance(answer, TensorFile):
                return number, answer
            return number, Done(self._store.get(answer, last=True))

    def _look(self) -> None:
        """Kills workers that have been stopped for too long."""
        stopped = {
            number: f"worker {number + 1} (process {process.pid})"
            for number, process in enumerate(self._processes)
            if _is_stopped(process.pid)
        }
        for number in self._silence.look(stopped):
            process = self._processes[number]
            process.kill()
            process.wait()
            self._answers.put((number, process, Stopped()))

    def close(self) -> None:
        """Ends all workers, busy or not, and removes the files in shared memory."""
        for process in self._processes:
            process.kill()
            process.wait()
            _end(process)
        self._remove()


def _is_stopped(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


def _write(process: subprocess.Popen[bytes], message: Any) -> None:
    assert process.stdin is not None  # noqa: S101 - it was opened as a pipe
    try:
        pickle.dump(message, process.stdin)
        process.stdin.flush()
    except (BrokenPipeError, OSError):
        # The listener sees its end as well, and reports it.
        return


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                # What was still buffered for a dead worker is lost.
                continue


def _ending(process: subprocess.Popen[bytes], why: str) -> str:
    """How a process without further answers ended; one that still waits for orders is killed, for ``why``."""
    try:
        status = process.wait(LEAVING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return why
    return fresh.ending(status)
