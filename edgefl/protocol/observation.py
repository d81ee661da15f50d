"""What measures read of a server version, and what they give."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from edgefl.core.arrays import Bools, Floats, Ints
from edgefl.protocol.nets import Net, Predictor
from edgefl.protocol.trees import identical
from edgefl.protocol.values import Batch

# Images at a time, which bounds the memory of activations.
CHUNK = 512


class Row(NamedTuple):
    """One value of a measure.

    Attributes:
        value: a number; NaN and infinities are not stored.
        figure: which figure of the measure, such as "worst"; empty for the one that it is named after.
        model: whose model: "global", "personal" (clients' own) or "trained" (as a client trained it, before
            the merge).
        client: the client that the value is of; None for all clients together.
        label: the class, the layer, the local step or the other client that the value is of; empty for all of
            them together.
    """

    value: float
    figure: str = ""
    model: str = "global"
    client: int | None = None
    label: str = ""


@dataclass(frozen=True, eq=False)
class Participant:
    """A client of the last merge.

    Attributes:
        start: the shared model that it received; parts that it keeps for itself are as after its training.
        trained: the shared model as it trained it, before the merge.
        own: its personal model as it trained it, before the merge.
        sent: the parts of the net that it sent, without ``buffers``.
        steps: how many its job took, over all phases.
        after: (steps, fewer than these) -> ``trained`` as it was then, by training again; None unless a
            measure needs "local steps".
    """

    client: int
    net: Net
    start: Predictor
    trained: Predictor
    own: Predictor
    sent: tuple[str, ...]
    steps: int = 0
    after: Callable[[int], Predictor] | None = None


@dataclass(frozen=True, eq=False)
class Observation:
    """A server version as measures see it. Everything is computed when it is first read, and then kept.

    Test samples are numbered from 0 to n - 1; places are such numbers.

    Attributes:
        round: from 0.
        net: the model; of several, the first client's.
        classes: C.
        global_model: None if the method has no global model.
        personal_model: client -> its own model under this version.
        clients: those that are admitted and have test samples.
        labels: of the test samples (n,).
        images: places -> normalised test images (len(places), *shape).
        tests: by client, the places of its own test set; a place may occur twice.
        class_counts: training samples of each class (N, C).
        training: (client, most) -> its first training samples in order, at most so many of them, not
            augmented; all of them where ``most`` is None.
        before: the global model before the last merge; None if there is none.
        personal_before: client -> its own model under the version before the last merge.
        accuracies: personal accuracies by client, where they are known already.
        earlier: by measure, the rows that it gave when it was taken last.
    """

    version: int
    round: int
    net: Net
    classes: int
    global_model: Predictor | None
    personal_model: Callable[[int], Predictor]
    clients: Sequence[int]
    labels: Ints
    images: Callable[[Ints], Tensor]
    tests: Sequence[Ints]
    class_counts: Ints
    training: Callable[[int, int | None], Batch]
    participants_of: Callable[[], tuple[Participant, ...]] = tuple
    before: Predictor | None = None
    personal_before: Callable[[int], Predictor] | None = None
    accuracies: Mapping[int, float] = field(default_factory=dict)
    earlier: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    _correct: dict[int, tuple[Predictor, Bools]] = field(default_factory=dict, repr=False)

    @cached_property
    def participants(self) -> tuple[Participant, ...]:
        """The clients whose training the last merge took, if it came after the last evaluation."""
        return self.participants_of()

    @cached_property
    def global_logits(self) -> Tensor:
        """The global model's logits of all test samples (n, C), float64, at temperature 1."""
        return self.logits(self.model)

    @property
    def model(self) -> Predictor:
        """The global model, which is there for a measure that needs it."""
        if self.global_model is None:
            raise ValueError("the method has no global model")
        return self.global_model

    def logits(self, predictor: Predictor, places: Ints | None = None) -> Tensor:
        """A model's logits (n, C) of test samples, float64, at temperature 1, on the CPU.

        Args:
            places: which samples; None for all.
        """
        places = np.arange(len(self.labels)) if places is None else places
        with torch.no_grad():
            parts = [
                predictor.logits(predictor.weights, self.images(places[start : start + CHUNK]))
                for start in range(0, len(places), CHUNK)
            ]
        return torch.cat([part.to("cpu", torch.float64) for part in parts])

    def correct(self, predictor: Predictor) -> Bools:
        """Whether a model's largest logit is the label's, of all test samples (n,)."""
        if id(predictor) not in self._correct:
            is_global = predictor is self.global_model
            logits = self.global_logits if is_global else self.logits(predictor)
            self._correct[id(predictor)] = predictor, logits.argmax(dim=-1).numpy() == self.labels
        return self._correct[id(predictor)][1]

    def class_accuracies(self, predictor: Predictor) -> Floats:
        """A model's accuracy on the test samples of each class (C,); NaN for a class without any."""
        return self.by_class(self.correct(predictor))

    def by_class(self, right: Bools) -> Floats:
        """The share of each class's test samples (C,) that are right (n,); NaN for a class without any."""
        correct = np.bincount(self.labels, weights=right, minlength=self.classes)
        with np.errstate(invalid="ignore"):
            return np.asarray(correct / np.bincount(self.labels, minlength=self.classes))

    def own_accuracy(self, client: int, predictor: Predictor) -> float:
        """A model's accuracy on a client's own test set."""
        places = self.tests[client]
        for shared in (self.global_model, self.before):
            if (
                shared is not None
                and predictor.logits == shared.logits
                and identical(predictor.weights, shared.weights)
            ):
                return float(self.correct(shared)[places].mean())
        found = self.logits(predictor, places).argmax(dim=-1).numpy() == self.labels[places]
        return float(found.mean())

    @cached_property
    def personal_accuracies(self) -> Floats:
        """Each client's own model on its own test set, in the order of ``clients``."""
        return np.array(
            [
                self.accuracies[client]
                if client in self.accuracies
                else self.own_accuracy(client, self.personal_model(client))
                for client in self.clients
            ]
        )

    def class_shares(self, clients: Sequence[int]) -> Floats:
        """The share of each class in the training samples of some clients together (C,)."""
        counts = self.class_counts[list(clients)].sum(axis=0)
        return np.asarray(counts / counts.sum())

    def spread_out(self, most: int) -> Ints:
        """Places of at most so many test samples, evenly spaced."""
        count = min(most, len(self.labels))
        return np.linspace(0, len(self.labels), count, endpoint=False).astype(np.int64)

    def balanced(self, most: int) -> Ints:
        """Places of test samples, as many of each class: at most so many, and as the rarest class has."""
        by_class = [np.flatnonzero(self.labels == label) for label in np.unique(self.labels)]
        count = min(most, *map(len, by_class))
        return np.sort(np.concatenate([places[:count] for places in by_class]))
