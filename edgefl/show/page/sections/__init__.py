"""The parts of a report page, each with its records and how they are made."""
