"""Accuracy drop: each client's accuracy on its own test set before and after the last merge.

    change_k = acc_k(after) - acc_k(before)

so that a drop is negative (Lee et al. 2024, FLex&Chill, Figure 7). After is the client's own model under
the new version. Before is, for a participant of the merge, its own model as it trained it, and for the
others their own model under the version before. A client's own model is the global one unless the method
makes it another. The two groups have figures of their own, as in the paper.
"""

from collections.abc import Iterator, Mapping

from edgefl.measures import Measure
from edgefl.measures._over_clients import over_clients
from edgefl.protocol import Observation, Row


class Params(Measure):
    NEEDS = ("participants",)
    UNIT = "share"

    def measure(self, seen: Observation) -> Iterator[Row]:
        previous = seen.personal_before
        if previous is None:
            return
        after = dict(zip(seen.clients, seen.personal_accuracies.tolist(), strict=True))
        trained = {
            one.client: seen.own_accuracy(one.client, one.own)
            for one in seen.participants
            if one.client in after
        }
        taking = {one.client for one in seen.participants}
        others = {
            client: seen.own_accuracy(client, previous(client))
            for client in seen.clients
            if client not in taking
        }
        groups = {"participants": trained, "others": others}
        # Changes first: where there is room for two figures, these are shown.
        for figure in ("change", "before", "after"):
            for group, before in groups.items():
                yield from over_clients(_values(figure, before, after), f"{group} {figure}", model="personal")


def _values(figure: str, before: Mapping[int, float], after: Mapping[int, float]) -> Mapping[int, float]:
    if figure == "before":
        return before
    return {client: after[client] - (was if figure == "change" else 0.0) for client, was in before.items()}
