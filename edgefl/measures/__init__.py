"""Measures of server versions, a file each: a formula, its source, and the rows that it gives."""
