"""Says why a process ended whose Ray agent was killed: Ray ends it at once, without an error to handle.

``edgefl.compute.ray_cluster`` starts this file with the agent's process number. It ends with the process that
started it, which writes a byte before it closes standard input in order.
"""

from __future__ import annotations

import os
import select
import sys

_TOLD = """\
error: the run failed: Ray's agent on this computer (raylet, process {pid}) has ended, and this process too
  hint:  it was killed, or the computer ran out of memory; what was saved until the last merge is valid
"""


def main(pid: int) -> None:
    """Waits for the end of the agent, then for that of its own parent."""
    agent, orders = os.pidfd_open(pid), sys.stdin.buffer
    ended, _, _ = select.select([agent, orders], [], [])
    # A parent that ends first takes its agent with it.
    if orders not in ended and not orders.read():
        sys.stderr.write(_TOLD.format(pid=pid))


if __name__ == "__main__":
    main(int(sys.argv[1]))
