"""Fashion-MNIST (FMNIST): articles of clothing, 28 x 28 grey (Xiao, Rasul and Vollgraf 2017)."""

from edgefl.data.dataset import Source, Spec
from edgefl.data.readers import known
from edgefl.data.sources import Dataset

_NAMES = "T-shirt/top, Trouser, Pullover, Dress, Coat, Sandal, Shirt, Sneaker, Bag, Ankle boot"
# Mean and deviation of the training images; published code has them to more digits (0.28604, 0.35302).
SPEC = Spec("fashion-mnist", (1, 28, 28), 60_000, 10_000, tuple(_NAMES.split(", ")), (0.2860,), (0.3530,))


class Params(Dataset):
    def build(self) -> Source:
        return known(SPEC, "FashionMNIST")
