"""What a net draws while it trains: dropout and its kin.

An engine says whose step is next (``training``), and what a net draws in it comes from a stream of that job,
phase and step alone: the same numbers on any engine, for any number of workers, and again. Outside of steps,
a net draws from torch's own generator, as a module does.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from edgefl.core.draws import derive
from edgefl.protocol.nets import transformed

# Functions of (x, p, train) and the dimensions of x for which a whole channel is dropped; none for elements.
_MASKS = {
    F.dropout: None,
    F.dropout1d: 3,
    F.dropout2d: 4,
    F.dropout3d: 5,
    torch.dropout: None,
}


At: TypeAlias = Callable[[Sequence[int], int, Sequence[int]], None]
"""Says whose step is next.

It takes the seeds of the jobs that are trained together, the phase's place in their fold (-1 before all), and
how many of its steps each job has taken.
"""


class _DrawnStep:
    """One step of a job, or of several jobs that are stacked."""

    def __init__(self, seeds: Sequence[int], phase: int, steps: Sequence[int]) -> None:
        self._seeds, self._phase, self._steps = seeds, str(phase), steps

    @cached_property
    def generators(self) -> list[torch.Generator]:
        """One for each job; made at the first draw, since few nets draw."""
        return [
            torch.Generator().manual_seed(derive(seed, "drawn", exchange=self._phase, nth=step))
            for seed, step in zip(self._seeds, self._steps, strict=True)
        ]


_step: _DrawnStep | None = None
_drawing = 0


@contextmanager
def training() -> Iterator[At]:
    """Jobs are trained inside."""
    global _step  # noqa: PLW0603 - a process trains on one thread, and a net's signature has no room for it

    def at(seeds: Sequence[int], phase: int, steps: Sequence[int]) -> None:
        global _step  # noqa: PLW0603 - as above
        _step = _DrawnStep(seeds, phase, tuple(steps))

    try:
        yield at
    finally:
        _step = None


def is_drawing() -> bool:
    """Whether a net that draws is being trained on: a draw elsewhere would be no client's own."""
    return _drawing > 0


@contextmanager
def drawing(x: Tensor) -> Iterator[None]:
    """What is drawn inside, in a net's training pass on ``x``, comes from the step's stream."""
    global _drawing  # noqa: PLW0603 - as above
    _drawing += 1
    try:
        if _step is None or x.device.type == "meta":
            yield
        elif transformed():
            with _Masks(_step.generators):
                yield
        else:
            with _drawn_from(_step.generators[0], x.device):
                yield
    finally:
        _drawing -= 1


@contextmanager
def _drawn_from(generator: torch.Generator, device: torch.device) -> Iterator[None]:
    """Torch's own generator of a device draws what ``generator`` would."""
    if device.type == "cuda":
        # A GPU's generator has a state of another form: it begins at the stream's next seed.
        with torch.random.fork_rng(devices=[device]):
            torch.cuda.manual_seed(int(torch.randint(2**62, (), generator=generator)))
            yield
        return
    default, before = torch.default_generator, torch.default_generator.get_state()
    default.set_state(generator.get_state())
    try:
        yield
    finally:
        generator.set_state(default.get_state())
        default.set_state(before)


class _Masks(TorchFunctionMode):
    """Draws each stacked client's dropout from its own generator; other draws vmap refuses."""

    def __init__(self, generators: Sequence[torch.Generator]) -> None:
        super().__init__()
        self._generators = generators

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        if func in _MASKS:
            named = {{"train": "training"}.get(key, key): value for key, value in (kwargs or {}).items()}
            masked = self._dropped(_MASKS[func], *args, **named)
            if masked is not None:
                return masked
        return func(*args, **(kwargs or {}))

    def _dropped(  # torch's names
        self,
        channels: int | None,
        input: Tensor,  # noqa: A002
        p: float = 0.5,
        training: bool = True,  # noqa: FBT001, FBT002
        inplace: bool = False,  # noqa: FBT001, FBT002
    ) -> Tensor | None:
        """As torch's CPU kernels drop; None where torch itself draws nothing, or does something else."""
        if not training or p in {0, 1} or channels not in {None, input.dim()}:
            return None
        like = input.detach()
        for place in range(2, channels or 0):
            like = like.narrow(place, 0, 1)
        noise = _Noise.apply(like, 1 - p, self._generators).div_(1 - p)  # type: ignore[no-untyped-call]
        return input.mul_(noise) if inplace else input * noise


class _Noise(torch.autograd.Function):
    """Zeros and ones of a tensor's shape, each client's from its own generator."""

    @staticmethod
    def forward(like: Tensor, keep: float, generators: Sequence[torch.Generator]) -> Tensor:
        """For one client, or for several that are given the same tensor, which is refused."""
        if len(generators) > 1:
            raise RuntimeError("randomness error mode: what clients have in common is dropped")
        return torch.empty_like(like, device="cpu").bernoulli_(keep, generator=generators[0]).to(like.device)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing is differentiated."""

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, like: Tensor, keep: float, generators: Sequence[torch.Generator]
    ) -> tuple[Tensor, int]:
        del info
        each = like.movedim(in_dims[0], 0)
        rows = [_Noise.forward(one, keep, [own]) for one, own in zip(each, generators, strict=True)]
        return torch.stack(rows), 0
