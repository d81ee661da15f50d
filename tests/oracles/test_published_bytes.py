"""Published communication figures, beside what the tracer reads off the methods' own payloads.

Sources: SphereFed, Table 1 and section 5.3; FedClassAvg, Table 5 and section 5.4. The papers do not say
whose bytes their tables count and in which unit; the set-ups under which their figures come out are stated
with each test, and are deductions.
"""

import io
from collections.abc import Mapping

import pytest
import torch
from builders import build_method, build_net

from edgefl.compute import meta
from edgefl.core.cost import Trace
from edgefl.protocol import Net

CIFAR = (3, 32, 32)
ROUNDS = 100
BATCH = 64
MB, MIB, KIB = 1e6, 2**20, 2**10


def traces(name: str, net: Net, **settings) -> dict[str, tuple[Trace, int]]:
    """A method's exchanges by name: (what it costs a client, how often it takes place in all rounds)."""
    method = build_method(name, net, **settings)
    return {
        exchange.name: (
            meta.trace(method, exchange, net, [[{BATCH: 1}] * len(exchange.work.phases)]),
            ROUNDS // exchange.when.every if exchange.when.at == "round" else 1,
        )
        for exchange in method.exchanges
    }


def total(sizes: Mapping[str, int], *parts: str) -> int:
    """The bytes of some parts of a payload."""
    return sum(size for part, size in sizes.items() if part in parts)


@pytest.fixture(scope="module")
def mobilenet() -> Net:
    """MobileNetV2 on CIFAR-100: l = 1,280 features, C = 100 classes, a head without bias (Table 14)."""
    return build_net("mobilenet-v2", CIFAR, 100, head_bias=False)


@pytest.mark.nightly
def test_fedavgs_classifier_over_a_hundred_rounds(mobilenet: Net):
    """SphereFed, Table 1, FedAvg: 102 MB.

    One client, both directions, decimal megabytes: 1,280 * 100 * 4 B = 0.512 MB, 100 rounds, twice: 102.4.
    (The caption says "over 10 clients", which would be 1,024.)
    """
    ((train, times),) = traces("fedavg", mobilenet).values()
    down, up = total(train.down, "head") * times, total(train.up, "head") * times
    assert (down, up) == (51_200_000, 51_200_000)
    assert round((down + up) / MB) == 102, f"{down / MB} MB down and {up / MB} MB up; published: 102"


@pytest.mark.nightly
def test_spherefeds_calibration(mobilenet: Net):
    """SphereFed, Table 1, SphereFed: 7 MB, which are the calibration's upload alone.

    U of l x C and V of l x l, one client, once: (0.128 + 1.6384) M * 4 B = 7.0656 MB. The rounds send no
    classifier. Not in the table: the fixed head, received once before the first round, and the calibrated
    head, received once after the last, 0.512 MB each; 8.09 MB in all.
    """
    found = traces("spherefed", mobilenet)
    assert {name: times for name, (_, times) in found.items()} == {
        "announce": 1,
        "train": ROUNDS,
        "calibrate": 1,
        "deliver": 1,
    }
    classifier = {
        name: (total(one.down, "head", "gram") * times, total(one.up, "head", "gram") * times)
        for name, (one, times) in found.items()
    }
    assert classifier == {
        "announce": (512_000, 0),
        "train": (0, 0),
        "calibrate": (0, 7_065_600),
        "deliver": (512_000, 0),
    }
    upload, all_of_it = classifier["calibrate"][1], sum(map(sum, classifier.values()))
    assert round(upload / MB, 2) == 7.07, f"{upload / MB} MB up; published: 7"
    assert round(all_of_it / MB, 2) == 8.09, f"{all_of_it / MB} MB with the two heads received"


@pytest.mark.nightly
def test_the_classifiers_operations_over_a_hundred_rounds(mobilenet: Net):
    """SphereFed, Table 1: FedAvg 1.9e4 GFLOP, SphereFed 1.7e2 GFLOP; here the scope is all clients.

    50,000 samples; 10 epochs in 100 rounds, or one pass of calibration. The classifier's forward pass is
    left out, as in the table. The body has convolutions alone, so other products are the calibration's own.
    SphereFed: the Gram products, 2*l*(l + C) a sample: 176.6 GFLOP, printed as 1.7e2 (it rounds to 1.8e2).
    FedAvg: what training the head takes beyond fixing it is its weight gradient, 2*l*C a sample: 1.28e4
    GFLOP. The table's 1.9e4 are 3*l*C a sample; what the third l*C counts it does not say.
    """
    samples, passes = 50_000, 10 * ROUNDS
    plain = traces("fedavg", mobilenet)["train"][0].phases[0].steps[BATCH].flops
    sphere = traces("spherefed", mobilenet)
    fixed = sphere["train"][0].phases[0].steps[BATCH].flops
    gram = sum(
        kernel.flops * count
        for kernel, count in sphere["calibrate"][0].phases[0].steps[BATCH]
        if kernel.op != "convolution"
    )
    calibration = gram // BATCH * samples
    assert calibration == 2 * 1_280 * (1_280 + 100) * samples == 176_640_000_000
    assert calibration / 1e9 == pytest.approx(1.7e2, rel=0.05), f"{calibration / 1e9} GFLOP; published: 1.7e2"
    head = (plain - fixed) // BATCH * samples * passes
    assert head == 2 * 1_280 * 100 * samples * passes == 12_800_000_000_000
    assert 1.5 * head / 1e9 == pytest.approx(1.9e4, rel=0.02), f"{head / 1e9} GFLOP; published: 1.9e4"


@pytest.fixture(scope="module")
def resnet() -> Net:
    """FedClassAvg's ResNet-18: torchvision's with a 512 -> 512 layer and a 512 -> 10 classifier."""
    return build_net("resnet18", CIFAR, 10, stem="imagenet", wrap=512)


def saved(state: Mapping[str, torch.Tensor]) -> int:
    """The size of a file that ``torch.save`` writes, as the paper measured."""
    file = io.BytesIO()
    torch.save(state, file)
    return file.getbuffer().nbytes


def test_a_whole_resnet_as_saved_and_as_sent(resnet: Net):
    """FedClassAvg, Table 5, ResNet-18: 43.73 MB, the saved state_dict in binary megabytes, one direction.

    Its tensors are 11,444,298 parameters and 9,600 running statistics, 45,815,592 B = 43.69 MiB; they are
    what FedAvg sends each way. The rest is the file's: names, padding of each tensor to 64 bytes, and the
    20 batch norms' counters of batches, which torchvision's state_dict has and which are never sent here.
    """
    ((train, _),) = traces("fedavg", resnet).values()
    raw = sum(train.up.values())
    assert raw == sum(train.down.values()) == 4 * (11_444_298 + 9_600) == 45_815_592
    state = resnet.module(resnet.init(0)).state_dict()
    norms = [name.removesuffix("running_var") for name in state if name.endswith("running_var")]
    assert len(norms) == 20
    file = saved(state | {f"{norm}num_batches_tracked": torch.tensor(0) for norm in norms})
    assert round(file / MIB, 2) == 43.73, f"{file} B = {file / MIB:.3f} MiB saved; published: 43.73 MB"
    assert round(raw / MIB, 2) == 43.69, f"{raw} B = {raw / MIB:.3f} MiB in tensors"


def test_a_classifier_as_saved_and_as_sent(resnet: Net):
    """FedClassAvg, Table 5, proposed: 22 KB, the saved classifier in binary kilobytes, one direction.

    Its tensors are 512 * 10 + 10 numbers, 20,520 B = 20.04 KiB, which are what FedClassAvg sends each way.
    """
    ((train, _),) = traces("fedclassavg", resnet).values()
    assert train.up == train.down == {"head": 20_520}
    file = saved(resnet.module(resnet.init(0)).get_submodule("head").state_dict())
    assert round(file / KIB) == 22, f"{file} B = {file / KIB:.2f} KiB saved; published: 22 KB"
    assert round(20_520 / KIB, 2) == 20.04
