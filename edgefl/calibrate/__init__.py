"""From this machine to a device file: timings in fresh processes, a fit, and every number with its source."""

from edgefl.calibrate.calibration import calibrate
from edgefl.calibrate.session import FULL, QUICK, Effort

__all__ = ["FULL", "QUICK", "Effort", "calibrate"]
