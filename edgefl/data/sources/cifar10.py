"""CIFAR-10: small colour photographs, 32 x 32, ten classes (Krizhevsky 2009)."""

from edgefl.data.dataset import Source, Spec
from edgefl.data.readers import known
from edgefl.data.sources import Dataset

_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
# Of the original training images, over all pixels of a channel. The deviation (0.2023, 0.1994, 0.2010), which
# is also common, is the mean of the images' own.
_MEAN, _STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
SPEC = Spec("cifar10", (3, 32, 32), 50_000, 10_000, _NAMES, _MEAN, _STD)


class Params(Dataset):
    def build(self) -> Source:
        return known(SPEC, "CIFAR10")
