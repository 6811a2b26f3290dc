"""Run the attempts, one process each, and print what came of them."""

# Plain os calls are what is tried here:
# ruff: noqa: BLE001, T201

import errno
import json
import os
import signal
import sys
import time

from tests.terminal.sandbox.attempts import hidden, kernel, processes, writing  # noqa: F401
from tests.terminal.sandbox.attempts.tools import ATTEMPTS, World

LIMIT_S = 8


def run(function, world):
    """Run one attempt in a child; returns what it achieved, or None, and how it was stopped."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        world.reporter = writer
        signal.alarm(LIMIT_S)
        try:
            achieved = function(world)
            answer = {"escaped": str(achieved) if achieved else None, "how": ""}
        except BaseException as error:
            number = getattr(error, "errno", None)
            name = errno.errorcode.get(number, "") if number else ""
            answer = {"escaped": None, "how": name or f"{type(error).__name__}: {error}"}
        os.write(writer, json.dumps(answer).encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        raw = pipe.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(raw) if raw else {"escaped": None, "how": f"ended {status}"}


def main():
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    world = World(json.loads(sys.argv[1]))
    names = sys.argv[2:] or list(ATTEMPTS)
    for name in names:
        began = time.monotonic()
        outcome = run(ATTEMPTS[name], world)
        took = round(time.monotonic() - began, 2)
        print("@" + json.dumps({"name": name, **outcome, "took": took}), flush=True)


if __name__ == "__main__":
    main()
