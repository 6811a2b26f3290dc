"""Which inspector fits this machine."""

import sys

from workers.readiness.darwin import DarwinInspector
from workers.readiness.inspector import Inspector
from workers.readiness.linux import LinuxInspector
from workers.terminal.master import Master


def inspector_for(master: Master, *, root_pid: int, shim_pid: int, exact: bool = True) -> Inspector:
    """Return the inspector of this platform; ``exact`` False leaves the exact tier out."""
    if sys.platform.startswith("linux"):
        machine = None if exact else "none"
        return LinuxInspector(master.fd, master.slave_fd, root_pid, shim_pid, machine=machine)
    return DarwinInspector(master.fd, master.slave_fd, root_pid)
