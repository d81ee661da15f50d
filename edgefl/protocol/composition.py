"""Methods made of methods: what one adds beside its base's exchange.

The state of a server is a dict whose top level has the shared parts of the net; all else that a method keeps
is under the method's name, and so it is in client states, payloads and uploads. A method passes on what it
does not know.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from edgefl.core.errors import UserError
from edgefl.protocol.aggregation import starting
from edgefl.protocol.nets import Carry, Net
from edgefl.protocol.trees import Payload, Tree, leaves, rebuild, zeros
from edgefl.protocol.values import TRAIN, Arrival, Ctx, Method, Phase

Start: TypeAlias = Callable[[Carry, Payload, Tree | None, Ctx], Carry]
Arrivals: TypeAlias = Sequence[Arrival]


def extended(
    base: Method,
    name: str,
    *,
    server: Callable[[Tree], Tree] | None = None,
    client: Callable[[Tree], Tree] | None = None,
    down: Callable[[Tree, int], Payload] | None = None,
    start: Start | None = None,
    phases: Sequence[Phase] = (),
    finish: Callable[[Carry, Ctx], tuple[Payload | None, Tree | None]] | None = None,
    arrivals: Callable[[Tree, Arrivals], Arrivals] | None = None,
    merge: Callable[[Tree, Tree, Arrivals], Tree] | None = None,
    confirmed: bool = False,
    stale: bool = True,
) -> Method:
    """The base with what a method adds to its exchange "train", each under the method's name.

    Args:
        base: the method to extend; it does the same as before.
        name: of the extending method: its key in server state, client state, payload and upload.
        server: initial weights -> its own part of the server state.
        client: initial weights -> its own part of the client state, which makes the exchange stateful.
        down: (server state, client) -> its own part of the payload.
        start: (the base's carry, payload, client state or None, ctx) -> carry.
        phases: what is done after the base's phases.
        finish: (carry, ctx) -> its own parts of the upload and of the client state; None for none.
        arrivals: (server state, arrivals) -> the arrivals as the base merges them.
        merge: (what the base merged, the server state before, arrivals) -> server state.
        confirmed: whether its part of the client state mirrors what the server has merged; see ``Exchange``.
        stale: whether the extended exchange can still merge stale uploads.

    Raises:
        UserError: the base has no such exchange, or a part of this name already.
    """
    train = next((each for each in base.exchanges if each.name == TRAIN), None)
    if train is None:
        raise UserError(
            f"{name} needs a base that has the exchange {TRAIN!r}; this one has "
            + ", ".join(each.name for each in base.exchanges),
            hint="choose another base, such as fedavg",
        )
    work = train.work

    def sent(server: Tree, to: int) -> Payload:
        payload = train.down(server, to)
        return payload if down is None else beside(payload, name, down(server, to))

    def started(payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:
        carry = work.start(payload, state, ctx)
        return carry if start is None else start(carry, payload, state, ctx)

    def finished(carry: Carry, ctx: Ctx) -> tuple[Payload, Tree | None]:
        upload, state = work.finish(carry, ctx)
        own, kept = (None, None) if finish is None else finish(carry, ctx)
        if own is not None:
            upload = beside(upload, name, own)
        return upload, state if kept is None else beside(state or {}, name, kept)

    def merged(server: Tree, given: Arrivals) -> Tree:
        found = train.merge(server, given if arrivals is None else arrivals(server, given))
        return found if merge is None else merge(found, server, given)

    changed = replace(
        train,
        down=sent,
        work=replace(work, start=started, phases=(*work.phases, *phases), finish=finished),
        merge=merged,
        stateful=train.stateful or client is not None,
        confirmed=(*train.confirmed, name) if confirmed else train.confirmed,
        stale=train.stale and stale,
    )
    return replace(
        base,
        server=base.server
        if server is None
        else lambda initial: beside(base.server(initial), name, server(initial)),
        client=base.client
        if client is None
        else lambda initial: beside(base.client(initial) or {}, name, client(initial)),
        exchanges=tuple(changed if each is train else each for each in base.exchanges),
    )


def beside(tree: Tree, name: str, own: Tree) -> Tree:
    """The tree with a part more; a ``UserError`` if it has one of this name."""
    if name in tree:
        raise UserError(
            f"{name} cannot be combined with itself: its base has a part {name!r} already",
            hint="choose another base",
        )
    return {**tree, name: own}


def anchored(method: Method, net: Net, parts: Iterable[str]) -> Method:
    """The method, its carry's "anchor" holding parts of the model that a client starts from."""
    wanted = tuple(parts)

    def start(carry: Carry, payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:  # noqa: ARG001 - as extensions start
        model = starting(net, payload, state)
        return {**carry, "anchor": {**carry.get("anchor", {}), **{part: model[part] for part in wanted}}}

    return extended(method, "anchor", start=start)


def shifted(carry: Carry, shift: Tree, trained: Sequence[str] = ()) -> Carry:
    """The carry with a tree that is added to every gradient, beside what is added already.

    Args:
        carry: with "weights", if ``shift`` lacks parts.
        shift: by part.
        trained: all parts that are trained, if ``shift`` lacks some; nothing is added to those.
    """
    missing = [part for part in trained if part not in shift]
    if missing:
        shift = {**shift, **zeros(carry["weights"], missing)}
    before = carry.get("shift")
    if before is not None:
        pairs = zip(leaves(before), leaves({part: shift[part] for part in before}), strict=True)
        shift = rebuild(before, (one + other for one, other in pairs))
    return {**carry, "shift": shift}
