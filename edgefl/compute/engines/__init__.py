"""Who does the client work: one file an engine."""
