"""What a federated method is: a value of pure functions over nested dicts of tensors.

A method says what its server keeps, what travels, and what a client does with it (a ``Fold``).
Engines interpret that value and know no method by name; the cost model is one of them, run on meta
tensors. Nothing here keeps state.
"""

from edgefl.core.steps import Passes as Passes
from edgefl.protocol.aggregation import averaging as averaging
from edgefl.protocol.aggregation import local_training as local_training
from edgefl.protocol.aggregation import needs_trained as needs_trained
from edgefl.protocol.aggregation import starting as starting
from edgefl.protocol.composition import anchored as anchored
from edgefl.protocol.composition import extended as extended
from edgefl.protocol.composition import needs_received as needs_received
from edgefl.protocol.composition import neutral_over as neutral_over
from edgefl.protocol.composition import shifted as shifted
from edgefl.protocol.delivery import delivery as delivery
from edgefl.protocol.files import read_tree as read_tree
from edgefl.protocol.files import write_tree as write_tree
from edgefl.protocol.layers import forward as forward
from edgefl.protocol.layers import frozen as frozen
from edgefl.protocol.layers import layers_of as layers_of
from edgefl.protocol.layers import reading as reading
from edgefl.protocol.layers import tensors_before as tensors_before
from edgefl.protocol.local_steps import effective_steps as effective_steps
from edgefl.protocol.nets import Carry as Carry
from edgefl.protocol.nets import Net as Net
from edgefl.protocol.nets import Predictor as Predictor
from edgefl.protocol.nets import Seen as Seen
from edgefl.protocol.nets import Stage as Stage
from edgefl.protocol.nets import Term as Term
from edgefl.protocol.nets import cross_entropy as cross_entropy
from edgefl.protocol.previous import with_previous as with_previous
from edgefl.protocol.proximal import proximal_term as proximal_term
from edgefl.protocol.requirements import incompatible as incompatible
from edgefl.protocol.requirements import only_sgd as only_sgd
from edgefl.protocol.requirements import shared_parts as shared_parts
from edgefl.protocol.requirements import training_phase as training_phase
from edgefl.protocol.staleness import reexpressed as reexpressed
from edgefl.protocol.training import GradientStep as GradientStep
from edgefl.protocol.training import Within as Within
from edgefl.protocol.training import add_product as add_product
from edgefl.protocol.training import chilled as chilled
from edgefl.protocol.training import fit as fit
from edgefl.protocol.training import fit_loss as fit_loss
from edgefl.protocol.training import gradients_of as gradients_of
from edgefl.protocol.training import is_carry as is_carry
from edgefl.protocol.training import plain_objective as plain_objective
from edgefl.protocol.training import sgd as sgd
from edgefl.protocol.training import trainer as trainer
from edgefl.protocol.trees import BUFFERS as BUFFERS
from edgefl.protocol.trees import Payload as Payload
from edgefl.protocol.trees import Tree as Tree
from edgefl.protocol.trees import bytes_by_part as bytes_by_part
from edgefl.protocol.trees import flatten as flatten
from edgefl.protocol.trees import leaves as leaves
from edgefl.protocol.trees import matched as matched
from edgefl.protocol.trees import nbytes as nbytes
from edgefl.protocol.trees import parts_of as parts_of
from edgefl.protocol.trees import rebuild as rebuild
from edgefl.protocol.trees import shapes as shapes
from edgefl.protocol.trees import structure as structure
from edgefl.protocol.trees import tree_map as tree_map
from edgefl.protocol.trees import unflatten as unflatten
from edgefl.protocol.trees import unstacked as unstacked
from edgefl.protocol.trees import weighted_mean as weighted_mean
from edgefl.protocol.trees import zeros as zeros
from edgefl.protocol.values import Arrival as Arrival
from edgefl.protocol.values import Assignment as Assignment
from edgefl.protocol.values import Batch as Batch
from edgefl.protocol.values import Ctx as Ctx
from edgefl.protocol.values import Exchange as Exchange
from edgefl.protocol.values import Fold as Fold
from edgefl.protocol.values import Method as Method
from edgefl.protocol.values import Phase as Phase
from edgefl.protocol.values import Site as Site
from edgefl.protocol.values import When as When
