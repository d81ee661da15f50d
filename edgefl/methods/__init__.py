"""Federated methods, one file each: the paper in its docstring, ``Params`` and ``build(params, site)``."""
