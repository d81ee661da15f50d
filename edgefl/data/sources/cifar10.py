"""CIFAR-10: small colour photographs, 32 x 32, ten classes (Krizhevsky 2009)."""

from edgefl.data.dataset import Source, Spec
from edgefl.data.readers import known
from edgefl.data.sources import Dataset

SPEC = Spec(
    name="cifar10",
    shape=(3, 32, 32),
    train_size=50_000,
    test_size=10_000,
    class_names=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    # Of the 50,000 original training images, over all pixels of a channel. The std of
    # (0.2023, 0.1994, 0.2010), which is also common, is the mean of the images' own deviations.
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2470, 0.2435, 0.2616),
)


class Params(Dataset):
    def build(self) -> Source:
        return known(SPEC, "CIFAR10")
