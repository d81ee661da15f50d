"""What some methods require of the net, their base, the clients' optimizer and the task.

What does not meet a requirement is refused with a ``UserError``. ``name`` is that of the method that asks,
``component`` its base as the scenario names it, and ``base`` the same, built on the net.
"""

from collections.abc import Iterable

from torch import Tensor

from edgefl.core.errors import UserError
from edgefl.core.optimizers import Optimizer
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.params import Component
from edgefl.protocol.nets import Net
from edgefl.protocol.training import GradientStep, NetObjective
from edgefl.protocol.values import TRAIN, Method, Phase, Site


def shared_parts(name: str, base: Method, component: Component, net: Net) -> tuple[str, ...]:
    """The trained parts that the base's exchange "train" sends and averages: its server has one of each.

    A base without any is refused.
    """
    sent, server = _sent(base, net), base.server(net.on_meta())
    parts = tuple(part for part in net.trained if part in sent and part in server)
    if not parts:
        raise UserError(
            f"{name} needs a base that averages what clients train, and {component.name} averages none of it",
            hint="use a base such as fedavg",
        )
    return parts


def needs_trained(name: str, net: Net, *parts: str) -> None:
    """Refuses a net that lacks one of these parts, or in which another method keeps it fixed."""
    for part in parts:
        if not net.parts()[part]:
            raise UserError(
                f"{name} trains the {part} by itself, and {net.name} has none",
                hint="use a model with hidden layers",
            )
        if part not in net.trained:
            raise UserError(
                f"{name} trains the {part}, and the method whose base it is keeps the {part} fixed",
                hint="use another base, such as fedavg",
            )


def needs_received(name: str, base: Method, component: Component, net: Net, parts: Iterable[str]) -> None:
    """Refuses a base whose clients receive none of some parts of the model."""
    wanted, sent = tuple(parts), _sent(base, net)
    if not any(part in sent for part in wanted):
        raise UserError(
            f"{name} needs a base that sends its clients the {' or the '.join(wanted)}, "
            f"which {component.name} does not",
            hint="use a base such as fedavg",
        )


def needs_plain_model(name: str, base: Method, component: Component, net: Net) -> None:
    """Refuses a base whose models are not the net's own features under its own head.

    That is one that changes either, or predicts in another way.
    """
    initial = net.on_meta()
    found = base.personal_model(base.server(initial), base.client(initial)).net
    if found is None or found.features is not net.features or found.head is not net.head:
        raise UserError(
            f"{name} needs a base that predicts with the model's own features and head, "
            f"and {component.name} does not",
            hint="use a base such as fedavg",
        )


def _sent(base: Method, net: Net) -> set[str]:
    """The parts of the payload of the exchange "train"."""
    server = base.server(net.on_meta())
    return {part for each in base.exchanges if each.name == TRAIN for part in each.down(server, 0)}


def training_phase(name: str, base: Method, component: Component) -> tuple[Phase, GradientStep]:
    """The base's only phase of training, and its step; refuses several, and one of other steps."""
    phases = [phase for phase in base.trains if phase.reports]
    match [(phase, phase.step) for phase in phases]:
        case [(Phase() as phase, GradientStep() as step)]:
            return phase, step
    raise UserError(
        f"{name} needs a base that trains in one phase of gradient steps, and {component.name} has "
        + (" and ".join(repr(phase.name) for phase in phases) or "none"),
        hint="use a base such as fedavg",
    )


def trained_net(base: Method, net: Net) -> Net:
    """The net as the base trains it, with what methods below have changed, such as its loss or temperature.

    Args:
        net: what the base was built on; it is returned where the base's objective is not a net's own.
    """
    objectives = [one.step.objective for one in base.trains if isinstance(one.step, GradientStep)]
    return next((each.net for each in objectives if isinstance(each, NetObjective)), net)


def incompatible(name: str, base: Method, net: Net, others: dict[str, str]) -> None:
    """Refuses bases that are built on certain methods: their states have a part of such a name.

    Args:
        others: for each of these methods, why not.
    """
    initial = net.on_meta()
    parts = base.server(initial).keys() | (base.client(initial) or {}).keys()
    for other, why in others.items():
        if other in parts:
            raise UserError(f"{name} cannot be combined with {other}: {why}", hint="leave out one of the two")


def only_sgd(name: str, optimizer: Optimizer) -> Sgd:
    """The optimizer, if it is SGD; refuses another one."""
    if not isinstance(optimizer, Sgd):
        raise UserError(
            f"{name} cannot be combined with {optimizer.name}: it takes a client's move for the sum of its "
            "gradients times the learning rate",
            where="local.optimizer",
            hint="use sgd, with or without momentum",
        )
    return optimizer


def needs_public(name: str, site: Site) -> Tensor:
    """The task's public images, (P, C, H, W) of uint8; refuses a task without."""
    if site.public is None:
        raise UserError(
            f"{name} works on public data, and the task has none",
            where="task.public",
            hint="set task.public, such as {samples: 3000}",
        )
    return site.public
