"""FFC, SphereFed's calibration, on the features of any method (Dong et al. 2022, Section 4.3, Appendix C.3).

The base trains as it does, by cross-entropy for instance. Then its head is replaced by the one that solves
least squares on all clients' features; see ``edgefl.protocol.statistics``. The paper's heads have no bias,
and one that has gets 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from edgefl.core.params import Component, Strict
from edgefl.protocol import Calibration, Method, Site, calibrated, check_features, neutral_over


class Params(Strict):
    """FFC's parameters."""

    calibrate: Annotated[
        Calibration,
        Field(
            description="once (after the last round), every so many rounds, never, or for each client: "
            "personal (by FFC) or personal_sgd (by local training of the head)"
        ),
    ] = "once"
    ridge: Annotated[
        float, Field(ge=0, description="added to the Gram matrix's diagonal; the paper's lambda")
    ] = 0.0
    base: Annotated[Component, Field(description="what trains the features")] = Component(name="fedavg")


def build(params: Params, site: Site) -> Method:
    """The base method and the calibration of its head.

    Raises:
        UserError: the base has no common features, or no head that can be calibrated.
    """
    net, base = site.net, site.base(site.net)
    common = params.calibrate not in {"personal", "personal_sgd"}
    check_features(net, base, "ffc", params.base, head=common, calibrated=params.calibrate != "never")
    method = calibrated(base, net, site.local, params.calibrate, params.ridge)
    return replace(method, neutral=neutral_over(params.base, base, calibrate="never"))
