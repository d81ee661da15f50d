"""The report page: runs as records for reading and drawing, and as one HTML file."""
