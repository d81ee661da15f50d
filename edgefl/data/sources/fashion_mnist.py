"""Fashion-MNIST (FMNIST): articles of clothing, 28 x 28 grey (Xiao, Rasul and Vollgraf 2017)."""

from edgefl.data.dataset import Source, Spec
from edgefl.data.readers import known
from edgefl.data.sources import Dataset

_NAMES = "T-shirt/top, Trouser, Pullover, Dress, Coat, Sandal, Shirt, Sneaker, Bag, Ankle boot"

SPEC = Spec(
    name="fashion-mnist",
    shape=(1, 28, 28),
    train_size=60_000,
    test_size=10_000,
    class_names=tuple(_NAMES.split(", ")),
    # Of the 60,000 training images; published code has them to more digits (0.28604, 0.35302).
    mean=(0.2860,),
    std=(0.3530,),
)


class Params(Dataset):
    def build(self) -> Source:
        return known(SPEC, "FashionMNIST")
