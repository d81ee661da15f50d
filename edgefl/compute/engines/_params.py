"""Parameters that several engines share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from edgefl.compute.engines import EngineParams
from edgefl.compute.job import Trainer
from edgefl.compute.loop import Loop
from edgefl.compute.vmapped import Vmapped
from edgefl.core.errors import UserError
from edgefl.core.host import cores
from edgefl.core.units import Bytes

Device = Annotated[
    str,
    Field(pattern=r"^(auto|cpu|cuda(:\d+)?)$", description="where to train: auto, cpu, cuda or cuda:N"),
]
Count = Annotated[int, Field(gt=0)]
# Assumed: a worker takes about 200 MB, and gains nothing without a core of its own.
_MOST_WORKERS, _MOST_PER_CORE = 64, 4
Memory = Annotated[Bytes, Field(gt=0)]


class TrainingParams(EngineParams):
    """Parameters of every engine that trains."""

    device: Device = "auto"
    state_memory: Annotated[
        Memory, Field(description="memory for client states; those beyond it are kept in the run's files")
    ] = 1e9

    @property
    def place(self) -> str:
        """The device of the driver's tensors; auto is a GPU where there is one."""
        return self.device


class Stacking(TrainingParams):
    """How clients are stacked, which may change the last bits of results."""

    group: Annotated[Count, Field(description="the most clients trained together")] = 64
    memory: Annotated[
        Memory, Field(description="the most memory of a group, by the traced memory of one client's training")
    ] = 2e9


class Working(Stacking):
    """How workers train."""

    workers: Annotated[Count | None, Field(description="how many, one thread each; null is one per core")] = (
        None
    )
    inner: Annotated[Literal["loop", "vmapped"], Field(description="how each worker trains")] = "loop"

    @property
    def place(self) -> str:
        """The CPU, on which workers train."""
        return "cpu" if self.device == "auto" else self.device

    def check_device(self) -> None:
        """Workers train on the CPU.

        Raises:
            UserError: the device is another.
        """
        if self.device not in {"auto", "cpu"}:
            raise UserError(
                f"workers train on the CPU, not on {self.device}",
                where="engine.device",
                hint="use --engine vmapped to train on a GPU",
            )

    def trainer(self) -> Trainer:
        """How each worker trains."""
        return Loop() if self.inner == "loop" else Vmapped(self.group, int(self.memory))


def check_workers(workers: int | None) -> None:
    """Checks that this machine can hold so many worker processes.

    Raises:
        UserError: it cannot.
    """
    most = max(_MOST_WORKERS, _MOST_PER_CORE * cores())
    if (workers or 1) > most:
        raise UserError(
            f"{workers} workers are too many for this machine's {cores()} cores",
            where="engine.workers",
            hint=f"use at most {most}; more than one per core gains nothing",
        )
