"""Engines, which do the client work; one file each."""
