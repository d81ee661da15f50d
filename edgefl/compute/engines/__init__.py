"""Engines, which do the client work; one file each."""

from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from edgefl.compute.job import Engine, EngineContext, Trainer
from edgefl.compute.loop import Loop
from edgefl.compute.vmapped import Vmapped
from edgefl.core.params import Component
from edgefl.core.units import Bytes

# A worker takes about 200 MB, and gains nothing without a core of its own.
Workers = Annotated[int, Field(gt=0, le=256)]
Memory = Annotated[Bytes, Field(gt=0)]


class EngineParams(Component):
    TRAINS: ClassVar[bool] = True

    @abstractmethod
    def build(self, context: EngineContext) -> Engine:
        """The engine of a run."""

    def check(self) -> None:
        """Refuses, before the run, what this machine does not have; raises a ``UserError``."""


class TrainingParams(EngineParams):
    device: Annotated[
        str,
        Field(pattern=r"^(auto|cpu|cuda(:\d+)?)$", description="where to train: auto, cpu, cuda or cuda:N"),
    ] = "auto"
    state_memory: Annotated[
        Memory, Field(description="memory for client states; those beyond it are kept in the run's files")
    ] = 1e9


class Stacking(TrainingParams):
    """How clients are stacked, which may change the last bits of results."""

    group: Annotated[int, Field(gt=0, description="the most clients trained together")] = 64
    memory: Annotated[
        Memory, Field(description="the most memory of a group, by the traced memory of one client's training")
    ] = 2e9


class Working(Stacking):
    device: Annotated[Literal["cpu"], Field(description="where workers train")] = "cpu"
    workers: Annotated[Workers | None, Field(description="how many; null is one per core")] = None
    inner: Annotated[Literal["loop", "vmapped"], Field(description="how each worker trains")] = "loop"

    def trainer(self) -> Trainer:
        return Loop() if self.inner == "loop" else Vmapped(self.group, int(self.memory))
