"""How much an update counts that began some versions ago."""

from typing import Annotated, Literal

from pydantic import Field

from edgefl.core.params import Positive, Strict


class Staleness(Strict):
    """A function s of the staleness d in versions, s(0) = 1 (Xie et al. 2019, Section 5.2).

    Attributes:
        shape: "constant", 1; "polynomial", (1 + d) ** -a; or "hinge", 1 up to b, then 1 / (a (d - b) + 1).
        a, b: see ``shape``.
    """

    shape: Literal["constant", "polynomial", "hinge"] = "polynomial"
    a: Positive = 0.5
    b: Annotated[float, Field(ge=0)] = 4.0

    def scale(self, behind: int) -> float:
        """s(d)."""
        if self.shape == "polynomial":
            return float((1 + behind) ** -self.a)
        if self.shape == "constant" or behind <= self.b:
            return 1.0
        return 1 / (self.a * (behind - self.b) + 1)
