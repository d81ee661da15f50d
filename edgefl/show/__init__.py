"""Tables for people; reads the store only."""
