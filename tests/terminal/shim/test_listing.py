"""The same teardown through every listing, with and without pidfds, in a process of its own."""

import asyncio
import json
import os
import sys
import uuid
from pathlib import Path

import pytest

from tests.load.trees import marked
from tests.support.eventually import scaled
from tests.support.paths import ROOT

SCRIPT = """
import errno, json, os, select, subprocess, sys, time
sys.path.append(sys.argv[1])
from workers.shim import listing, reap
from workers.shim.child import prctl
from workers.shim.teardown import Teardown
prctl(36, 1)
kind, with_pidfds = sys.argv[2], sys.argv[3] == "pidfds"
if not with_pidfds:
    def pidfd_open(pid):
        raise OSError(errno.EMFILE, "none left")
    os.pidfd_open = pidfd_open
class Ps(listing.PsProcesses):
    def _list(self, *which):  # Linux's ps reckons start times back from now, to a second or so
        exact = listing.ProcProcesses()
        rows = [(row, exact.row(row.pid)) for row in super()._list(*which)]
        for row, twin in rows:
            row.start = twin.start if twin else 0
        return [row for row, _ in rows]
processes = {
    "children": lambda: listing.ProcProcesses(with_children_files=True),
    "scan": lambda: listing.ProcProcesses(with_children_files=False),
    "ps": Ps,
}[kind]()
script = '''setsid sleep 801 & sh -c "sleep 802 & sleep 803 & wait" &
sh -c "kill -STOP \\\\$\\\\$; sleep 804" & (sleep 805 &) ; trap "" TERM; echo up
while :; do sleep 0.05; done'''
root = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE)
assert root.stdout.readline() == b"up\\n"
me = os.getpid()
while True:  # until the tree is grown and the stopped one stands
    found = processes.below(me, lambda pid, _: processes.row(pid))
    sleeping = sum(row.name == "sleep" for row in found)
    if sleeping >= 4 and any(row.state == "T" for row in found):
        break
poll = select.poll()
ender = reap.Ender(
    Teardown(root=None, grace_s=0.2, shell_grace_s=0.2), processes, clock=time.monotonic,
    collect=lambda: [ender.reaped(pid) for pid, _ in reap.reap()],
    watch=lambda fd: poll.register(fd, select.POLLIN), unwatch=poll.unregister,
)
frozen = [row for row in ender._scan(True) if row.is_living]
frozen = {ender._processes.row(row.pid).state for row in frozen}
began = time.monotonic()
ender.begin()
while ender.done is None:
    wait = max(0.0, (ender.until or 0) - time.monotonic())
    for fd, _ in poll.poll(wait * 1000):
        ender.readable(fd)
    for pid, _ in reap.reap():
        ender.reaped(pid)
    if ender.until is not None and time.monotonic() >= ender.until:
        ender.tick()
ender.close()
print(json.dumps({
    "seconds": time.monotonic() - began, "count": len(found),
    "found": sorted({row.name for row in found}),
    "order": all(row.ppid not in [r.pid for r in found[:i]] for i, row in enumerate(found)),
    "frozen": sorted(frozen), "left": reap.has_children(),
    "ended": sorted({e.signo or 0 for e in ender.done.ended}),
    "names": sorted({e.name for e in ender.done.ended}),
    "survivors": [e.name for e in ender.done.survivors],
    "fds": len(os.listdir("/dev/fd")),
}))
"""


@pytest.mark.parametrize("pidfds", ["pidfds", "no-pidfds"])
@pytest.mark.parametrize("kind", ["children", "scan", "ps"])
async def test_every_way_of_looking_ends_the_same_tree(kind, pidfds):
    if kind == "ps" and not Path("/bin/ps").exists():  # noqa: ASYNC240
        pytest.skip("no ps here")
    mark = uuid.uuid4().hex
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SCRIPT, str(ROOT), kind, pidfds,
        stdout=asyncio.subprocess.PIPE, env={**os.environ, "TREE_MARK": mark},
    )  # fmt: skip
    out, _ = await child.communicate()
    assert child.returncode == 0
    result = json.loads(out)
    assert {"sh", "sleep"} <= set(result["found"])
    assert result["count"] >= 7
    assert result["order"]
    assert result["seconds"] < scaled(1.5), "ends are noticed, not waited out"
    assert set(result["frozen"]) <= {"T", "R", "D"}, "told to stop, or already standing"
    assert "T" in result["frozen"]
    assert (result["survivors"], result["left"]) == ([], False)
    assert set(result["ended"]) >= {9, 15}
    assert "ps" not in result["names"]
    assert marked(mark) == []
