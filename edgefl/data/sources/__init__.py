"""Datasets, one file each: ``SPEC`` (known without files) and ``load(folder, download=...)``."""
