"""Laws of what the tracer reads off methods: a few batch sizes are traced, and stand for all."""

from builders import build_method, build_net
from nightly import sampled

from edgefl.compute import meta

NETS = {
    "mlp": ("mlp", (1, 3, 4), {"hidden": (8,)}),
    "cnn": ("cnn2", (1, 16, 16), {"channels": (2, 3), "hidden": 6}),
    "batch norm": ("spherefed-convnet", (3, 4, 4), {"norm": "batch"}),
}
BATCHES = (2, 3, 5, 9, 17, 31, 40)


@sampled(
    2,
    ("name", "net"),
    [
        ("fedavg", "batch norm"),
        ("spherefed", "cnn"),
        # Work that grows with the batch's square, and work in chunks.
        ("fedclassavg", "cnn"),
        ("fedcka", "batch norm"),
        ("ccvr", "mlp"),
        ("fedcurv", "mlp"),
    ],
)
def test_interpolated_sizes_are_traced_sizes(name, net):
    """Asked for many batch sizes at once, the tracer gives for each what it gives for that size alone."""
    model, shape, settings = NETS[net]
    built = build_net(model, shape, 5, **settings)
    method = build_method(name, built)

    def traced(exchange, sizes):
        return meta.trace(method, exchange, built, [[dict.fromkeys(sizes, 1)] * len(exchange.work.phases)])

    for exchange in (one for one in method.exchanges if one.work.phases):
        together = traced(exchange, BATCHES)
        for batch in BATCHES:
            alone = traced(exchange, [batch])
            for phase, own in zip(together.phases, alone.phases, strict=True):
                assert phase.steps[batch] == own.steps[batch], (phase.name, batch)
        (peak,) = together.peaks.values()
        assert peak == alone.peaks[(max(BATCHES),) * len(exchange.work.phases)]
