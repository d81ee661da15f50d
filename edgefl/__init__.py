"""edgefl: real federated training on a fleet you do not own."""
