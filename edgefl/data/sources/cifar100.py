"""CIFAR-100: small colour photographs, 32 x 32, a hundred fine classes (Krizhevsky 2009)."""

from edgefl.data.dataset import Source, Spec
from edgefl.data.readers import known
from edgefl.data.sources import Dataset

_NAMES = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel
can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur
dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion
lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree
pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea
seal shark shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank
telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
# Of the training images, over all pixels of a channel, as commonly published.
_MEAN, _STD = (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)
SPEC = Spec("cifar100", (3, 32, 32), 50_000, 10_000, tuple(_NAMES.split()), _MEAN, _STD)


class Params(Dataset):
    def build(self) -> Source:
        return known(SPEC, "CIFAR100")
