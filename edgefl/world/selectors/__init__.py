"""Who is asked, one file each: ``Params`` and ``build(params, world)``."""
