"""Accuracy inside a local training, every so many steps: on all classes, on a client's own and on the others.

At step s, with A_c(s) the accuracy on class c of what a client of the last merge has trained in s steps,
there are the accuracy on the test set and the in-local and out-local accuracies of ``local-accuracy``: how
soon a local training forgets what it does not see (Lee et al. 2022, FedNTD, section 2.2 and Figure 4, which
has the first and the last step). Step 0 is the model received; all steps together stand for the last one.

Clients are trained again, one after another, up to each of these steps: with n scores in one training, that
takes about n / 2 times as long as the training itself.
"""

from collections.abc import Iterator

from pydantic import Field

from edgefl.measures import Measure
from edgefl.measures._distributions import in_and_out
from edgefl.measures._over_clients import over_clients
from edgefl.protocol import Observation, Participant, Predictor, Row

# Where there is room for two figures, the first are shown.
_FIGURES = ("in-local", "out-local", "")


class Params(Measure):
    NEEDS = ("participants", "local steps")
    UNIT = "share"

    every: int = Field(10, gt=0, description="Local steps between scores.")

    def measure(self, seen: Observation) -> Iterator[Row]:
        """Rows of each client and over all that take so many steps, by step."""
        found: dict[tuple[str, int | None], dict[int, float]] = {}
        for one in seen.participants:
            for step in (None, *range(0, one.steps + 1, self.every)):
                # Not kept, as ``seen.correct`` would: there may be many.
                right = seen.logits(_model(one, step)).argmax(dim=-1).numpy() == seen.labels
                both = in_and_out(seen.class_shares([one.client]), seen.by_class(right))
                for figure, value in zip(_FIGURES, (*both, float(right.mean())), strict=True):
                    found.setdefault((figure, step), {})[one.client] = value
        for (figure, step), values in found.items():
            yield from over_clients(
                values, figure, model="trained", label="" if step is None else f"step {step}"
            )


def _model(one: Participant, step: int | None) -> Predictor:
    """What a client has after so many steps, or after all."""
    if step == 0:
        return one.start
    if step is None or step == one.steps:
        return one.trained
    if one.after is None:
        raise ValueError("a participant of a measure that needs local steps is trained again")
    return one.after(step)
