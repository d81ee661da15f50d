"""How transfers share links and take their time."""
