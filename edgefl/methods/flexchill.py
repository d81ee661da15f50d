"""FLex&Chill, logit chilling: training divides the logits by a temperature (its Equations 1-2, Algorithm 1).

A client minimises the base method's objective with CE(z / T, y) in place of CE(z, y); there is no T^2
factor, so T also scales the step: d/dz = (softmax(z / T) - onehot(y)) / T. Evaluation is at T = 1.

T is a setting of the job, as the learning rate is, and like it not charged (Algorithm 1 sends it along: 4
bytes).

Section 5 proposes temperatures by client and round, for stragglers and by sample, and leaves their formulas
open. Ours::

    {by: device, values: {NAME: T, ...}, default: 1}   by the client's device
    {by: model, values: {NAME: T, ...}, default: 1}    by the client's model
    {by: round, start: T, end: T, shape: linear}       from the first round to the last:
                                                       linear, cosine, or a step half-way
    {by: work, full: 1, power: 1, least: 0.05}         max(least, full * work^power), with the
                                                       job's share of the full local training
    {by: sample, easy: 1, hard: 0.25}                  mean_i CE(z_i / T_i, y_i), with
                                                       T_i = hard + (easy - hard) * p_i,
                                                       p_i = exp(-CE(z_i, y_i)), and no gradient
                                                       through T_i
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from edgefl.core.components import AnyMethod
from edgefl.methods import MethodParams
from edgefl.protocol import (
    Assignment,
    Carry,
    Ctx,
    Exchange,
    Method,
    Net,
    Payload,
    Site,
    Tree,
    at_temperature,
)
from edgefl.protocol.temperatures import ByModel, BySample, OfJob, Temperature


class Params(MethodParams):
    NEUTRAL: ClassVar = {"temperature": 1.0}

    temperature: Annotated[
        Temperature, Field(description="T, or what it depends on; below 1 sharpens, 1 is the base method")
    ] = 0.25
    base: Annotated[AnyMethod, Field(description="the method it chills")] = "fedavg"

    def build(self, site: Site) -> Method:
        temperature, net = self.temperature, site.net
        if isinstance(temperature, OfJob):
            base = site.base(net)
            return replace(base, exchanges=tuple(_by_job(each, temperature.of) for each in base.exchanges))
        if isinstance(temperature, BySample):
            return site.base(_by_sample(net, temperature.of))
        if isinstance(temperature, ByModel):
            temperature = temperature.of(net.name)
        return site.base(replace(net, temperature=net.temperature * temperature))


def _by_job(exchange: Exchange, temperature: Callable[[Assignment], float]) -> Exchange:
    """The exchange with its job's temperature in the carry, times the one that it sets already."""

    def settings(job: Assignment) -> Mapping[str, float]:
        found = exchange.settings(job) if exchange.settings else {}
        return {**found, "temperature": found.get("temperature", 1.0) * temperature(job)}

    def start(payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:
        return at_temperature(exchange.work.start(payload, state, ctx), ctx.settings["temperature"])

    return replace(exchange, work=replace(exchange.work, start=start), settings=settings)


def _by_sample(net: Net, temperature: Callable[[Tensor, Tensor], Tensor]) -> Net:
    """The net with each sample's temperature, times the one that it has already."""
    inner = net.sample_temperature

    def product(logits: Tensor, labels: Tensor) -> Tensor:
        found = temperature(logits, labels)
        return found if inner is None else found * inner(logits, labels)

    return replace(net, sample_temperature=product)
