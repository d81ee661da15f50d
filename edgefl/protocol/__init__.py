"""What a federated method is: a value of pure functions over nested dicts of tensors.

A method says what its server keeps, what travels, and what a client does with it (a ``Fold``).
Engines interpret that value and know no method by name; the cost model is one of them, run on meta
tensors. Nothing here keeps state.
"""

from edgefl.core.steps import Passes
from edgefl.protocol.aggregation import averaging, local_training
from edgefl.protocol.files import read_tree, write_tree
from edgefl.protocol.staleness import reexpressed
from edgefl.protocol.training import GradientStep, add_product, chilled, plain_objective, sgd, trainer
from edgefl.protocol.trees import (
    BUFFERS,
    Payload,
    Tree,
    bytes_by_part,
    flatten,
    leaves,
    matched,
    nbytes,
    rebuild,
    shapes,
    structure,
    tree_map,
    unflatten,
    unstacked,
    weighted_mean,
)
from edgefl.protocol.values import (
    Arrival,
    Batch,
    Carry,
    Ctx,
    Exchange,
    Fold,
    Method,
    Net,
    Phase,
    Predictor,
    Site,
    When,
    cross_entropy,
)

__all__ = [
    "BUFFERS",
    "Arrival",
    "Batch",
    "Carry",
    "Ctx",
    "Exchange",
    "Fold",
    "GradientStep",
    "Method",
    "Net",
    "Passes",
    "Payload",
    "Phase",
    "Predictor",
    "Site",
    "Tree",
    "When",
    "add_product",
    "averaging",
    "bytes_by_part",
    "chilled",
    "cross_entropy",
    "flatten",
    "leaves",
    "local_training",
    "matched",
    "nbytes",
    "plain_objective",
    "read_tree",
    "rebuild",
    "reexpressed",
    "sgd",
    "shapes",
    "structure",
    "trainer",
    "tree_map",
    "unflatten",
    "unstacked",
    "weighted_mean",
    "write_tree",
]
