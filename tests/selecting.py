"""A world of which only what selectors read exists."""

from types import SimpleNamespace

import numpy as np

from edgefl.core import catalogue

JOB = np.dtype([
    ("job", np.int64), ("client", np.int64), ("exchange", np.int64), ("round", np.int64),
    ("dispatched_s", np.float64), ("arrived_s", np.float64),
])  # fmt: skip


class World:
    """A world of clients with given samples, times and batteries."""

    def __init__(self, samples, seconds=None, battery=None, seed=0):
        count = len(samples)
        clients = Clients(samples=np.array(samples), admitted=np.ones(count, dtype=bool))
        prices = (
            SimpleNamespace(exchange="train", at="round", everyone=False),
            SimpleNamespace(exchange="report", at="round", everyone=True),
        )
        self.plan = SimpleNamespace(clients=clients, prices=prices, scenario=SimpleNamespace(seed=seed))
        self.round = 0
        self.now_s = 0.0
        self._seconds = np.ones(count) if seconds is None else np.array(seconds, dtype=float)
        self._battery = np.ones(count) if battery is None else np.array(battery, dtype=float)

    def predicted_s(self, exchange, clients):
        """As given."""
        assert exchange.exchange == "train"
        return self._seconds[clients]

    def battery(self, clients):
        """As given."""
        return self._battery[clients]


class Clients(SimpleNamespace):
    """The columns that selectors read."""

    def __len__(self):
        return len(self.samples)


def built(name, world, **params):
    module = catalogue.load("selectors", name)
    return module.Params(**params).build(world)


def everybody(world):
    return np.arange(len(world.plan.clients))


def chosen(selector, count, candidates):
    return selector.select(count, np.array(candidates)).tolist()


def ended(*rows, exchange=0):
    """Jobs as (client, round, seconds), and their numbers from 0; NaN seconds for one that did not arrive."""
    jobs = enumerate(rows)
    found = [(job, client, exchange, round_, 10.0, 10.0 + took) for job, (client, round_, took) in jobs]
    return np.array(found, dtype=JOB)
