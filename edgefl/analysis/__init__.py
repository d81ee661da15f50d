"""Numbers of runs: what their jobs cost, how they compare, and why; no text."""
