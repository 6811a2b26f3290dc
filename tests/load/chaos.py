"""Nothing but its shim can end a session: kill everything else at random, then count.

    python -m tests.load.chaos [--seed 1] [--minutes 30] [--owners 4]

A whole fabric as `fabric up` makes it. Owners send, read, signal and try each other's
sessions while workers, the node actor, the registry, the gateway, the raylet and all of Ray
are killed by a seed, also two at once. Then the audit: every shell is the one it was; every
command ran at most once, and those said to be completed exactly once (each appends a word of
its own to a file); all that was printed is in the byte log or declared as a gap; nobody got
into anybody else's session; after `fabric down` no process, descriptor or file is left.
"""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import psutil

from fabric.actors import cluster
from fabric.client import FabricClient
from fabric.core.errors import FabricError
from fabric.core.ids import SessionId
from tests.load.chaos_kills import Killer, Prey
from tests.load.chaos_owners import Owner, Told
from tests.load.embedded import Embedded, embedded
from tests.support import leaks
from tests.support.eventually import eventually

SETTLE_S = 120.0
SETTINGS = {
    "FABRIC_NODE__WARM_SESSIONS": "1",
    "FABRIC_NODE__MAX_STARTING": "1",
    "FABRIC_NODE__MAX_SESSIONS": "16",
    "FABRIC_REGISTRY__DEFAULT_MODE": "danger-full-access",
    "FABRIC_REGISTRY__LOST_TIMEOUT_S": "600",
    "FABRIC_WORKER_TEARDOWN__ORPHAN_GRACE_S": "600",
}


async def run(fabric: Embedded, file: Path, seed: int, seconds: float, count: int) -> list[str]:
    """Let owners work under fire and audit; return what is wrong."""
    told = Told()
    async with AsyncExitStack() as stack:
        owners = []
        for number in range(count):
            client = FabricClient.connect(
                fabric.address, token=fabric.token, agent=f"chaos-{number}", lease_s=86_400
            )
            owner = Owner(number, seed, await stack.enter_async_context(client), file, told)
            await owner.open()
            owners.append(owner)
        followers = [asyncio.create_task(owner.follow()) for owner in owners]
        client = owners[0].client

        async def answers() -> bool:
            try:
                await (await client.open("shell")).close()
            except FabricError:
                return False
            return True

        async def adoption(session_id: str) -> int:
            return (await client_of[session_id].session(SessionId(session_id)).status()).adoption

        client_of = {owner.session.id: owner.client for owner in owners}
        killer = Killer(
            Prey(Path(fabric.state_dir)), random.Random(seed), answers, adoption, [*client_of]
        )
        until = time.monotonic() + seconds
        await asyncio.gather(killer.run(until), *(owner.run(until, owners) for owner in owners))
        faults = told.faults + killer.faults
        faults += await audit(owners, told, file)
        for follower in followers:
            follower.cancel()
        await asyncio.gather(*followers, return_exceptions=True)
    report(killer, told, owners)
    return faults


async def audit(owners: list[Owner], told: Told, file: Path) -> list[str]:
    """Compare what was told with what ran, once everything has settled."""
    faults = []
    for owner in owners:

        async def settled(owner: Owner = owner) -> bool:
            try:
                found = await owner.session.wait_for(ready=True, timeout_s=10)
                return found.matched == "ready"
            except FabricError:
                return False

        try:
            await eventually(settled, within=SETTLE_S)
            now = await owner.session.status()
        except (AssertionError, FabricError) as error:
            faults.append(f"the shell of owner {owner.number} is lost: {error}")
            continue
        if now.pid != owner.pid:
            faults.append(f"the shell of owner {owner.number} is another one")
        result = await owner.session.send("printf 'the-%s\\n' end")
        await eventually(lambda owner=owner: b"the-end\r\n" in owner.log, within=SETTLE_S)
        if "the-end" not in result.viewport:
            faults.append(f"the shell of owner {owner.number} does not answer")
    ran = words(file)
    printed = b"".join(bytes(owner.log) for owner in owners)
    may_miss = any(owner.gaps for owner in owners)
    for word, times in ran.items():
        if times > 1:
            faults.append(f"{word} ran {times} times")
        if word not in told.completed | told.unsure:
            faults.append(f"{word} ran and nobody sent it")
        shown = printed.count(b"out-%s.\r\n" % word.encode())
        if shown != 1 and not (shown == 0 and may_miss):
            faults.append(f"the output of {word} is in the log {shown} times")
    faults += [f"{word} was completed and never ran" for word in told.completed if not ran[word]]
    return faults


def words(file: Path) -> Counter[str]:
    """Count what ran, by the word of each command."""
    return Counter(file.read_text().split()) if file.exists() else Counter()


def report(killer: Killer, told: Told, owners: list[Owner]) -> None:
    """Print what was done and how long things took."""
    print(f"killed {sum(killer.kills.values())}: {dict(killer.kills)}")
    for what, rows in sorted(killer.back_s.items()):
        rows.sort()
        worst = rows[min(len(rows) - 1, int(len(rows) * 0.99))]
        print(f"  usable after the death of {what}: p50 {rows[len(rows) // 2]:.2f} s,"
              f" p99 {worst:.2f} s, n {len(rows)}")  # fmt: skip
    print(f"answers: {dict(sorted(told.answers.items()))}")
    sent = len(told.completed | told.unsure)
    gaps = sum(owner.gaps for owner in owners)
    print(f"commands {sent}, completed {len(told.completed)}; bytes declared lost: {gaps}")


def leftovers(state_dir: str) -> list[str]:
    """List processes that still name the fabric's folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(state_dir in word for word in process.cmdline()):
                found.append(f"process {process.pid} is left: {' '.join(process.cmdline())[:100]}")
        except psutil.Error:
            continue
    return found


def _no_sockets(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not Path(folder, name).is_dir()
            and not Path(folder, name).is_file()]  # fmt: skip


def chaos(seed: int, seconds: float, owners: int, keep: Path | None = None) -> list[str]:
    """Run once; return what is wrong, nothing when all is well.

    What went wrong leaves its logs in the folder ``keep``, which must not be there yet.
    """
    before = leaks.take()
    with tempfile.TemporaryDirectory(prefix="fabric-chaos-") as folder:
        file = Path(folder, "ran")
        with embedded(**SETTINGS) as fabric:
            faults = asyncio.run(run(fabric, file, seed, seconds, owners))
            if faults and keep is not None:
                shutil.copytree(fabric.state_dir, keep, ignore=_no_sockets)
                embedded_ray = cluster.read(Path(fabric.state_dir))
                if embedded_ray is not None:
                    shutil.copytree(embedded_ray.temp_dir, keep / "ray", ignore=_no_sockets)
        faults += leftovers(fabric.state_dir)
    return faults + [row for row in leaks.since(before) if row.startswith("descriptor")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--owners", type=int, default=4)
    parser.add_argument("--keep", type=Path, help="a new folder for the logs of a failed run")
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.minutes:g} minutes, {options.owners} owners")
    faults = chaos(options.seed, options.minutes * 60, options.owners, options.keep)
    for fault in faults:
        print(f"FAULT {fault}")
    print("FAILED" if faults else "no shell, no command and no byte was lost")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
