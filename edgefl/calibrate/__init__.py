"""From this machine to a device file: timings in fresh processes, a fit, and every number with its source."""
