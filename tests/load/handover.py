"""A thousand people answer programs that end under their fingers.

    python -m tests.load.handover --races 1000 [--seed 1] [--load]

Each race runs a program on a real terminal as a model would, takes it over in place and
types an answer at a random moment around the program's end. The answer is a command that
would leave a trace if the shell ever got it. Programs end in different ways: they never
read, read one line of two, are killed, leave a child or a pipeline behind, are shell
builtins with a timeout. Exits with 1 when a single answer became a command, or when no
answer ever reached its program (then nothing would have been tried).
"""

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fabric.core.errors import FabricError, NotControllerError, SessionStateError
from fabric.core.shared import Person
from tests.support.eventually import eventually
from tests.support.shared_worker import Shared, View, shared_in
from workers.turn_table import Phase

LEAK = "touch leaked-{number}; echo leaked >> leaked\r"
TAKEN = "taken"
# Each is said `up` before it waits for a while; {s} is that while in seconds.
PROGRAMS = {
    "ends unread": "python3 -S -I -c \"import time; print('up', flush=True); time.sleep({s})\"",
    "reads one line": (
        "python3 -S -I -c \"import time; print('up', flush=True); time.sleep({s});"
        " open('taken','a').write(input())\""
    ),
    "is killed": (
        "python3 -S -I -c \"import time,os; print('up', flush=True); time.sleep({s});"
        ' os.kill(os.getpid(), 9)"'
    ),
    "execs away": (
        "python3 -S -I -c \"import time,os; print('up', flush=True); time.sleep({s});"
        " os.execvp('true', ['true'])\""
    ),
    "leaves a child": (
        "python3 -S -I -c \"import time,os; print('up', flush=True); pid = os.fork();"
        ' time.sleep({s} if pid else {s} * 2)"'
    ),
    "is a pipeline": "(echo up; sleep {s}) | cat",
    "is in a subshell": "(echo up; sleep {s}; exit 3)",
    "is a list": "echo up; sleep {s}; sleep {s}; true",
    "is a builtin": "echo up; read -t {s} X",
    "is a loop": "echo up; for i in 1 2 3; do sleep {s}; done",
}


def _burn(end: float) -> None:
    while time.time() < end:
        pass


async def race(
    shared: Shared, view: View, dice: random.Random, number: int, counts: Counter[str]
) -> str:
    """Run one race; returns the kind of program."""
    kind = dice.choice(list(PROGRAMS))
    lasts = dice.uniform(0.002, 0.03)
    seen = len(view.shown)
    task = asyncio.create_task(shared.send(PROGRAMS[kind].format(s=f"{lasts:.4f}")))
    await eventually(
        lambda: (b"up\r\n" in view.shown[seen:] and shared.turns.takeover) or task.done(), 20
    )
    target = shared.turns.takeover
    if target is None:
        counts["over before"] += 1
        await task
        return kind
    try:
        await view.ask(Person.TAKE_OVER, target=target)
    except SessionStateError:
        counts["over before"] += 1
        await task
        return kind
    wait = dice.choice((0.0, lasts, lasts * dice.uniform(0.5, 1.5), dice.uniform(0.0, 0.04)))
    await asyncio.wait({view.running}, timeout=wait)
    try:
        for part in _split(LEAK.format(number=number), dice):
            await view.type(part)
        counts["typed"] += 1
    except NotControllerError:
        counts["lease over"] += 1
    except FabricError as error:
        counts[error.reason] += 1
    await task
    await eventually(lambda: shared.turns.phase is Phase.READY, 20)
    return kind


def _split(text: str, dice: random.Random) -> list[str]:
    cut = dice.randrange(len(text))
    return dice.choice(([text], [text[:cut], text[cut:]], [text, text])) if cut else [text]


async def run(races: int, seed: int, folder: Path) -> tuple[Counter[str], Counter[str]]:
    """Run all races; returns how they went and of which kinds they were."""
    dice = random.Random(seed)
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    async with shared_in(folder / "w", operation_timeout_s=20.0) as shared, shared.view() as view:
        await shared.send(f"cd {folder}")
        for number in range(races):
            kinds[await race(shared, view, dice, number, counts)] += 1
            view.events[2:-50] = []  # what was shown long ago
            if number % 100 == 99:
                print(f"{number + 1} races: {dict(counts)}", flush=True)
        await shared.send("true")
    return counts, kinds


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--races", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--load", action="store_true", help="keep another core busy meanwhile")
    given = parser.parse_args()
    burner = None
    if given.load:
        burner = multiprocessing.Process(target=_burn, args=(time.time() + 3600,), daemon=True)
        burner.start()
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="pf", dir="/tmp") as name:
            folder = Path(name)
            (folder / "w").mkdir()
            counts, kinds = asyncio.run(run(given.races, given.seed, folder))
            leaks = sorted(path.name for path in folder.glob("leaked*"))
            taken = folder / TAKEN
            reached = taken.exists() and bool(taken.read_text())
    finally:
        if burner is not None:
            burner.terminate()
            burner.join()
    seconds = time.monotonic() - began
    print(f"load {os.getloadavg()[0]:.1f}, seed {given.seed}, {seconds:.0f} s")
    print(f"programs: {dict(kinds)}")
    print(f"{given.races} races: {dict(counts)}; leaks: {len(leaks)} {leaks[:5]}")
    if not reached:
        print("no answer ever reached its program: nothing was tried")
    return 1 if leaks or not reached else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
