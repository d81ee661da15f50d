"""Why rounds took as long as they did: their critical paths, and what other clients would have saved."""
