"""Stale uploads, re-expressed for today's model in one place for every method.

An upload u of a client that received r arrives when clients would receive c. Each part of it that has a
counterpart in the payload - a tensor of real numbers at the same path and of the same shape - becomes

- ``move``: c + s (u - r), the client's update on today's model (FedBuff, Nguyen et al. 2022, Algorithm 1: the
  mean of K such arrivals is w + (1/K) sum s_i delta_i);
- ``mix``: c + s (u - c), between today's model and the client's (FedAsync, Xie et al. 2019, Algorithm 1, with
  s = alpha s(t - tau): (1 - s) w + s u),

where s is the policy's scale. Running statistics (``BUFFERS``) are always mixed, since a moved variance could
be negative. Parts without a counterpart, such as Gram matrices, stay as they are.
"""

from collections.abc import Callable, Mapping

from torch import Tensor

from edgefl.protocol.trees import BUFFERS, Payload, counterparts, paths, rebuild


def _move(upload: Tensor, received: Tensor, current: Tensor, scale: float) -> Tensor:
    return current + scale * (upload - received)


def _mix(upload: Tensor, received: Tensor, current: Tensor, scale: float) -> Tensor:  # noqa: ARG001 - asked as _move is
    return current + scale * (upload - current)


CORRECTIONS: Mapping[str, Callable[[Tensor, Tensor, Tensor, float], Tensor]] = {"move": _move, "mix": _mix}


def reexpressed(
    upload: Payload, received: Payload, current: Payload, *, correction: str, scale: float
) -> Payload:
    """A stale or scaled upload as an update of what clients would receive now.

    Args:
        upload: what the client sent, as the server has it.
        current: what it would receive now.
        correction: "move" or "mix".
        scale: s, how much of the update counts.
    """
    tensors = [(path, leaf) for path, leaf in paths(upload) if isinstance(leaf, Tensor)]
    values = [
        CORRECTIONS["mix" if BUFFERS in path else correction](leaf, then, now, scale)
        if then is not None and now is not None and leaf.is_floating_point()
        else leaf
        for (path, leaf), then, now in zip(
            tensors, counterparts(upload, received), counterparts(upload, current), strict=True
        )
    ]
    corrected: Payload = rebuild(upload, values)
    return corrected
