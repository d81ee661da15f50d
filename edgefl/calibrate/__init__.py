"""From this machine to a device file.

Workloads (``workloads``, ``suites``) are timed in fresh processes (``measure``), a roofline is fitted to the
times (``fit``), power is read off what the host or a wattmeter tells (``energy``, ``wattmeter``, ``power``),
and every number is written with its source (``record``, ``calibration``).
"""

from edgefl.calibrate.calibration import Calibration, calibrate
from edgefl.calibrate.measure import FULL, QUICK, Effort

__all__ = ["FULL", "QUICK", "Calibration", "Effort", "calibrate"]
