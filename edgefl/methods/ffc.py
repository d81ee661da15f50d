"""FFC, SphereFed's calibration, on the features of any method (Dong et al. 2022, Section 4.3, Appendix C.3).

The base trains as it does, by cross-entropy for instance. Then its head is replaced by the one that solves
least squares on all clients' features; see ``edgefl.protocol.calibration``. The paper's heads have no bias,
and one that has gets 0.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from edgefl.core.components import AnyMethod
from edgefl.methods import MethodParams
from edgefl.protocol import CalibrationParams, Method, Site, calibrated, check_features


class Params(CalibrationParams, MethodParams):
    NEUTRAL: ClassVar = {"calibrate": "never"}

    base: Annotated[AnyMethod, Field(description="what trains the features")] = "fedavg"

    def build(self, site: Site) -> Method:
        """Raises a ``UserError`` if the base has no common features, or no head that can be calibrated."""
        net, base = site.net, site.base(site.net)
        check_features(net, base, "ffc", self.base, self.calibrate)
        return calibrated(base, net, site.local, self.calibrate, self.ridge)
