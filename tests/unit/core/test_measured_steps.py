"""Which steps a measured device treats as the same, and its message for unmeasured ones."""

from __future__ import annotations

import pytest
from builders import NETS, build_method, build_net
from hardware import measured, step

from edgefl.compute import meta
from edgefl.core.devices.measured import fingerprint
from edgefl.core.errors import UserError


def prints(method, net, batch) -> dict[tuple[str, str], str]:
    """A method's fingerprints at a batch size, by exchange and phase."""
    found = {}
    for exchange in method.exchanges:
        sizes = [[{batch: 1} for _ in exchange.work.phases]]
        for phase in meta.trace(method, exchange, net, sizes).phases:
            found[exchange.name, phase.name] = fingerprint(phase.steps[batch])
    return found


@pytest.mark.parametrize("name", ["fedclassavg", "spherefed"])
def test_a_step_is_the_same_at_every_batch_size(name):
    """Similarities of all pairs and Gram matrices grow their own way."""
    model, shape, settings = NETS["cnn"]
    built = build_net(model, shape, **settings)
    method = build_method(name, built)
    first = prints(method, built, 8)
    assert first
    assert all(prints(method, built, size) == first for size in (2, 7, 16))


def test_images_and_strides_tell_steps_apart():
    """A MobileNetV2 for small images has the weights of the one for large ones, and works otherwise."""
    nets = {
        (stem, side): build_net("mobilenet-v2", (3, side, side), stem=stem)
        for stem, side in (("cifar", 32), ("imagenet", 32), ("cifar", 64))
    }
    found = {fingerprint_of(net) for net in nets.values()}
    assert len(found) == len(nets)


def fingerprint_of(net) -> str:
    """A step of FedAvg at a batch of 2."""
    (only,) = prints(build_method("fedavg", net), net, 2).values()
    return only


def test_a_step_outside_the_measured_range_names_the_device():
    """The user has to change the device, so the message and its location name it."""
    with pytest.raises(UserError) as caught:
        measured([1, 2]).clock("my-desk", "fp32").time(step(16))
    assert "'my-desk'" in caught.value.what
    assert "4 to 8, not at 16" in caught.value.what
    assert caught.value.where == "my-desk"
