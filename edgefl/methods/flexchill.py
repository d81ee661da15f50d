"""FLex&Chill, logit chilling: training divides the logits by a temperature (its Equations 1-2, Algorithm 1).

A client minimises the base method's objective with CE(z / T, y) in place of CE(z, y); there is no T^2
factor, so T also scales the step: d/dz = (softmax(z / T) - onehot(y)) / T. Evaluation is at T = 1.

T is a setting of the job, as the learning rate is, and like it not charged (Algorithm 1 sends it along: 4
bytes).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from edgefl.core.params import Component, Strict
from edgefl.protocol import Method, Site


class Params(Strict):
    """FLex&Chill's parameter."""

    temperature: Annotated[float, Field(gt=0, description="T; below 1 sharpens, 1 is the base method")] = 0.25
    base: Annotated[Component, Field(description="the method it chills")] = Component(name="fedavg")


def build(params: Params, site: Site) -> Method:
    """The base method on a net that trains at the temperature."""
    chilled = replace(site.net, temperature=site.net.temperature * params.temperature)
    base = site.base(chilled)
    neutral = base.neutral
    if neutral is not None:
        neutral = {"temperature": 1.0, "base": {"name": params.base.name, **params.base.params, **neutral}}
    return replace(base, neutral=neutral)
