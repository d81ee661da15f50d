"""The virtual-time world: SimPy only, no torch."""
