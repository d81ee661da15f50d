"""Models, one family a file: ``Params`` and ``build(params, shape, classes) -> Net``."""
