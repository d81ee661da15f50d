"""A client's batches, as it has them alone."""

from edgefl.data.batching import Together


def batches(federation, client, phase, batch_size, seed, augment=None):
    """The batches of one phase of one job."""
    return Together(federation, [client], [phase], batch_size, [seed], augment=augment).of_one()
