"""Run inside a session: try to reach what belongs to the service, and say what was reached.

    python intruder.py '{"files": [...], "sockets": [...], "canary": "..."}'

Prints one line, ``@`` and a JSON list of sentences. Standard library only; runs under any
Python 3 and any account.
"""

# ruff: noqa: T201, PTH115, PTH123, PTH208

import json
import os
import socket
import sys


def contents(path):
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError:
        return b""


def main():
    facts = json.loads(sys.argv[1])
    canary = facts["canary"].encode()
    reached = []
    for path in facts["files"]:
        if contents(path):
            reached.append(f"read {path}")
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            reached.append(f"may write {path}")
        except OSError:
            pass
    for path in facts["sockets"]:
        try:
            with socket.socket(socket.AF_UNIX) as link:
                link.settimeout(2)
                link.connect(path)
                reached.append(f"connected {path}")
        except OSError:
            pass
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        for kind in ("environ", "cmdline"):
            if canary in contents(f"/proc/{name}/{kind}"):
                if kind == "cmdline" and int(name) == os.getpid():
                    continue  # what this program was told itself
                reached.append(f"found a secret in /proc/{name}/{kind}")
        try:
            links = [os.readlink(f"/proc/{name}/fd/{fd}") for fd in os.listdir(f"/proc/{name}/fd")]
        except OSError:
            continue
        reached += [f"{name} holds {link}" for link in links if link in facts["files"]]
    print("@" + json.dumps(reached), flush=True)


if __name__ == "__main__":
    main()
