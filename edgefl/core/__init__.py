"""The base layer: errors, units, seeds, names, costs and plans. Imports neither torch nor SimPy."""
