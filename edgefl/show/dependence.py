"""Whether the order of times and energies holds over all that the devices' numbers may be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgefl.core.errors import UserError
from edgefl.planning.sensitivity import Sensitivity, Verdict
from edgefl.show.averages import Compared
from edgefl.show.sensitivity import of_groups, quantity, title


@dataclass(frozen=True)
class Dependence:
    """What the times and energies of groups depend on; see ``show.sensitivity``.

    Attributes:
        found: of the groups whose runs are all done; None where it cannot be told.
        why: why it cannot.
    """

    found: Sensitivity | None
    why: str = ""

    def verdicts(self, key: str, ahead: Compared) -> Iterator[tuple[str, Verdict]]:
        """Those of a figure in which a group has less, by the ``title`` of the one that has more.

        Args:
            key: of its ``Row``.
            ahead: the group.
        """
        studied = quantity(key)
        for one in self.found.verdicts if self.found and studied else ():
            if one.quantity == studied and one.less == title(ahead):
                yield one.more, one


def dependence(groups: Sequence[Compared], factor: float) -> Dependence:
    """What times and energies depend on.

    Args:
        groups: those that are compared.
        factor: as in ``show.sensitivity.of_groups``.
    """
    done = [one for one in groups if all(run.status == "done" for run in one.runs)]
    if len(done) < 2:  # noqa: PLR2004 - an order is one of two
        return Dependence(None, "fewer than two runs are done")
    try:
        return Dependence(of_groups(done, factor, whole=True))
    except UserError as error:
        return Dependence(None, error.what)
