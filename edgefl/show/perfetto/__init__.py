"""A run's timeline as a trace that Perfetto opens."""
