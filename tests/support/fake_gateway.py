"""A stand-in for `fabric serve`: announces, waits for its end, does what its file says.

The file named by FAKE_GATEWAY holds one word for each start, used up from the front:
`serve` (the default), `refuse` (announce an error), `die` (end without a word).
"""

import json
import os
import signal
import sys
from pathlib import Path


def main(argv: list[str]) -> int:
    plan = Path(os.environ["FAKE_GATEWAY"])
    words = plan.read_text().split() if plan.exists() else []
    plan.write_text(" ".join(words[1:]))
    word = words[0] if words else "serve"
    announce = int(argv[argv.index("--announce-fd") + 1])
    sets = dict(argv[i + 1].split("=", 1) for i, flag in enumerate(argv) if flag == "--set")
    if word == "die":
        return 3
    if word == "refuse":
        row = {"error": {"reason": "INVALID_REQUEST", "message": "no such port", "metadata": {}}}
    else:
        listen = sets["gateway.listen"]
        address = listen if not listen.endswith(":0") else f"{listen[:-2]}:45678"
        row = {"ready": {"address": address}}
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
    os.write(announce, json.dumps(row).encode() + b"\n")
    os.close(announce)
    if word == "refuse":
        return 1
    signal.sigwait({signal.SIGTERM, signal.SIGUSR1})
    return 0


sys.exit(main(sys.argv[1:]))
