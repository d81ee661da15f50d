"""Ways to split training data among clients, one file each: ``Params`` and ``split``."""
