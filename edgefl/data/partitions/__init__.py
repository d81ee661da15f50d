"""Ways to share training data out among clients, one file each: ``Params`` and ``split``."""
