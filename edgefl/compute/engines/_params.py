"""What the engines' parameters share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from edgefl.compute.job import Trainer
from edgefl.compute.loop import Loop
from edgefl.compute.vmapped import Vmapped
from edgefl.core.params import Strict
from edgefl.core.units import Bytes

Device = Annotated[
    str,
    Field(pattern=r"^(auto|cpu|cuda(:\d+)?)$", description="where to train: auto, cpu, cuda or cuda:N"),
]
Count = Annotated[int, Field(gt=0)]
Memory = Annotated[Bytes, Field(gt=0)]


class EngineParams(Strict):
    """What every engine that trains takes."""

    device: Device = "auto"
    state_memory: Annotated[
        Memory, Field(description="client states beyond this leave memory for the run's files")
    ] = 1e9

    @property
    def place(self) -> str:
        """The device that the driver's tensors lie on too; auto is a GPU where there is one."""
        return self.device


class Stacking(EngineParams):
    """How clients are stacked; it may change the last bits of results."""

    group: Annotated[Count, Field(description="the most clients trained together")] = 64
    memory: Annotated[
        Memory, Field(description="what a group may take, by the traced memory of one client's training")
    ] = 2e9


class Working(Stacking):
    """How workers train."""

    workers: Annotated[Count | None, Field(description="how many, one thread each; null is one a core")] = (
        None
    )
    inner: Annotated[Literal["loop", "vmapped"], Field(description="how each worker trains")] = "loop"

    @property
    def place(self) -> str:
        """The CPU, which is what workers train on."""
        return "cpu" if self.device == "auto" else self.device

    def trainer(self) -> Trainer:
        """The trainer that each worker has."""
        return Loop() if self.inner == "loop" else Vmapped(self.group, int(self.memory))
