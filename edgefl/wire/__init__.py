"""How payloads travel, one codec a file."""
