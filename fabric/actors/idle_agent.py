"""A stand-in for the helper processes that a raylet insists on.

A raylet starts a dashboard agent and a runtime-environment agent, waits until both have
written the ports they listen on, and dies when one of them ends. This fabric uses
neither (no dashboard, no ``runtime_env``), and each costs 90 MB and the better part of
the cluster's start-up time. So an embedded node gives its raylet this program: it writes
the port files, listens on nothing, and ends with its raylet.

Run by path, isolated, without site-packages: standard library only.

    idle_agent.py <session_dir> <node_id> <port_name> <port> [<port_name> <port> ...]
"""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PARENT_POLL_S = 1.0


def main(argv: list[str]) -> None:
    """Write the port files and wait for the raylet's end."""
    raylet = os.getppid()
    session_dir, node_id, *ports = argv
    for name, port in zip(ports[::2], ports[1::2], strict=True):
        path = Path(session_dir) / f"{name}_{node_id}"
        spare = path.with_suffix(".new")
        spare.write_text(port)
        spare.replace(path)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        while os.getppid() == raylet:
            signal.pause()
    while os.getppid() == raylet:
        time.sleep(_PARENT_POLL_S)


if __name__ == "__main__":
    main(sys.argv[1:])
