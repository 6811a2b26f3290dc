"""Starts a shim: ``python -I -S .../workers/shim/__main__.py SOCKET``, orders on stdin.

The orders are one JSON object: ``key``, ``orphan_grace_s`` and ``path`` (where ptyprocess
lies; nothing of ``site`` is imported). The key comes by pipe since arguments and
environment can be read by others. Run as a file, this sees only the standard library
until it has found its own package.
"""

import os
import sys

if __name__ == "__main__":
    here = os.path.abspath(__file__)  # noqa: PTH100  (pathlib costs 3 ms of the start)
    for _ in range(3):
        here = os.path.dirname(here)  # noqa: PTH120
    sys.path.append(here)
    from workers.shim.boot import main

    sys.exit(main(sys.argv))
