"""Local training's settings: optimizer, length and batch size."""

from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny, field_validator, model_validator

from edgefl.core.components import OfKind
from edgefl.core.draws import derive
from edgefl.core.optimizers import Optimizer
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.params import Count, Strict
from edgefl.core.steps import Passes
from edgefl.core.units import Seconds


class Fit(Strict):
    """A length of local training that depends on the client: as much as fits into a time.

    Attributes:
        fit: the predicted time of a job without jitter: download, training at the client's speed, upload.
        most: the most epochs or steps.
        least: the fewest, also where they take longer.
    """

    fit: Annotated[Seconds, Field(gt=0)]
    most: Count
    least: Count = 1

    @model_validator(mode="after")
    def _in_order(self) -> "Fit":
        if self.least > self.most:
            raise ValueError(f"'least' is {self.least}, and 'most' only {self.most}")
        return self


class LocalTraining(Strict):
    """A client's training in one round: its length, and how it steps.

    Planning replaces a batch size of "fit" by a number. A length of ``Fit`` stays as it is: jobs carry their
    own numbers of steps.

    Attributes:
        epochs: passes over the client's data, or ``{fit: TIME, most: NUMBER, least: NUMBER}``; 1 if neither
            ``epochs`` nor ``steps`` is given.
        steps: optimizer steps in place of epochs, in either form.
        batch_size: samples a batch, or ``fit``: the largest that fits every device of the fleet that can
            train.
        optimizer: by its name, with its parameters.
        first_weights: of what clients keep to themselves: ``alike``, so that all clients with one model
            begin with the same weights, or of each client's ``own``; null for alike.
    """

    epochs: Count | Fit | None = None
    steps: Count | Fit | None = None
    batch_size: Count | Literal["fit"] = 32
    optimizer: Annotated[SerializeAsAny[Optimizer], OfKind("optimizers", "sgd")] = Sgd(lr=0.01)
    first_weights: Literal["alike", "own"] | None = None

    @field_validator("optimizer", mode="before")
    @classmethod
    def _default_by_its_name(cls, value: Any) -> Any:
        default = cls.model_fields["optimizer"].default
        return default if isinstance(value, str) and value.casefold() == default.name else value

    @model_validator(mode="after")
    def _one_length(self) -> "LocalTraining":
        if self.epochs is not None and self.steps is not None:
            raise ValueError("give either epochs or steps, not both")
        return self

    def first_seed(self, root: int, client: int) -> int:
        """The seed of the weights that a client begins with, from the run's."""
        return derive(root, "init", client=client if self.first_weights == "own" else -1)

    @property
    def size(self) -> int:
        """The batch size as a number, which planning has made of "fit"."""
        return int(self.batch_size)

    @property
    def fit(self) -> Fit | None:
        """The length where it depends on the client."""
        length = self.epochs if self.steps is None else self.steps
        return length if isinstance(length, Fit) else None

    @property
    def passes(self) -> Passes:
        """The length in the protocol's terms, the longest of all clients; one epoch by default."""
        length = self.steps or self.epochs or 1
        return self.lasting(length.most if isinstance(length, Fit) else length)

    def lasting(self, length: int) -> Passes:
        """So many epochs or steps, whichever the length is in."""
        return Passes(epochs=length) if self.steps is None else Passes(steps=length)
