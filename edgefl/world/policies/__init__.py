"""Server policies, one file each: ``Params`` and ``serve``."""
