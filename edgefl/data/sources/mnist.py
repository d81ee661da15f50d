"""MNIST: handwritten digits, 28 x 28 grey (LeCun, Bottou, Bengio and Haffner 1998)."""

from edgefl.data.dataset import Source, Spec
from edgefl.data.readers import known
from edgefl.data.sources import Dataset

# Mean and deviation as measured on the training images; PyTorch's MNIST example uses the same figures.
SPEC = Spec("mnist", (1, 28, 28), 60_000, 10_000, tuple("0123456789"), mean=(0.1307,), std=(0.3081,))


class Params(Dataset):
    def build(self) -> Source:
        return known(SPEC, "MNIST")
