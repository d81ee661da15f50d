"""A scenario in which much meets at once."""

from small import SKEWED

# Both ways through a codec that loses something, a link that loses packets, two models, four exchanges,
# energies that nobody knows, and a device that is refused.
MIXED = {
    "name": "mixed",
    "seed": 3,
    "task": {**SKEWED, "clients": 10},
    "model": [{"name": "mlp", "hidden": [512]}, {"name": "mlp", "hidden": [512]}],
    "method": {"name": "spherefed", "base": "fedprox"},
    "local": {"epochs": 2, "batch_size": 16, "optimizer": {"name": "sgd", "lr": 2.0}},
    "wire": {"up": {"name": "topk", "share": 0.3}, "down": "fp16"},
    "fleet": {
        "members": [
            {"device": "raspberry-pi-4b", "share": 2, "link": "lossy"},
            {"device": "phone-mid", "share": 2, "link": "4g"},
            {"device": "laptop-cpu", "share": 1, "link": "ethernet"},
            {"device": "stm32f746", "share": 1, "link": "ethernet"},
        ],
        "links": {
            "lossy": {
                "title": "a lossy link",
                "down": {"value": "2 Mbit/s", "status": "assumed", "source": "test"},
                "up": {"value": "1 Mbit/s", "status": "assumed", "source": "test"},
                "latency": {"value": "80 ms", "status": "assumed", "source": "test"},
                "loss": {"value": 0.02, "status": "assumed", "source": "test"},
                "radio": {"status": "unknown", "source": "test"},
            }
        },
        "slowdown": {"name": "lognormal", "sigma": 0.5},
        "jitter": {"name": "half-normal", "scale": 0.3},
    },
    "server": {"rounds": 6, "participants": 5},
    "evaluate": {"every": 2, "models": ["global", "personal"]},
}
