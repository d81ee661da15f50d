"""MNIST: handwritten digits, 28 x 28 grey (LeCun, Bottou, Bengio and Haffner 1998)."""

from edgefl.data.dataset import Source, Spec
from edgefl.data.readers import known
from edgefl.data.sources import Dataset

SPEC = Spec(
    name="mnist",
    shape=(1, 28, 28),
    train_size=60_000,
    test_size=10_000,
    class_names=tuple("0123456789"),
    # Measured on the 60,000 training images; PyTorch's MNIST example uses the same figures.
    mean=(0.1307,),
    std=(0.3081,),
)


class Params(Dataset):
    def build(self) -> Source:
        return known(SPEC, "MNIST")
