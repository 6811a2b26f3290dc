"""Thousands of sends to programs that ask for input, each after a random thinking time.

    python -m tests.load.readiness --sends 2000 [--seed 1] [--load]

Every turn knows the bytes that are its complete answer, prompt included, so a verdict
that came too early is seen, and so is one with input still unread. ``--load`` keeps
another core busy meanwhile. Exits with 1 when a verdict was false or only inferred.
"""

import argparse
import asyncio
import multiprocessing
import os
import random
import re
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.bare import BareTerminal, open_bash
from tests.support.eventually import pause

THINK_MS = (1.0, 50.0)


@dataclass(frozen=True)
class Program:
    """A program, its turns, and how its complete answer ends."""

    name: str
    start: str
    turn: Callable[[random.Random], tuple[str, str]]  # what to type, the pattern of the answer
    leave: str = ""
    needs: str = ""
    leave_submits: bool = True


def _python(dice: random.Random) -> tuple[str, str]:
    a, b = dice.randrange(10_000), dice.randrange(10_000)
    kind = dice.randrange(4)
    if kind == 0:
        return f"x={a}", r"x=\d+\r\n>>> $"
    if kind == 1:
        return f"{a}+{b}", rf"{a + b}\r\n>>> $"
    if kind == 2:
        return f"for i in range({a % 50 + 2}): print(i*{b})\n", rf"{(a % 50 + 1) * b}\r\n>>> $"
    wait = dice.randrange(1, 40) / 1000
    return f"import time; time.sleep({wait}); print({a}*2)", rf"{a * 2}\r\n>>> $"


def _gdb(dice: random.Random) -> tuple[str, str]:
    a, b = dice.randrange(10_000), dice.randrange(10_000)
    return f"print {a}+{b}", rf"= {a + b}\r\n\(gdb\) $"


def _bc(dice: random.Random) -> tuple[str, str]:
    a, b = dice.randrange(10_000), dice.randrange(10_000)
    if dice.randrange(8) == 0:
        return f"2^{a % 3000 + 3000} % 1000003\n{a}+{b}", rf"{a + b}\r\n$"
    return f"{a}+{b}", rf"{a + b}\r\n$"


def _node(dice: random.Random) -> tuple[str, str]:
    a, b = dice.randrange(10_000), dice.randrange(10_000)
    if dice.randrange(8) == 0:
        return f"await new Promise(r => setTimeout(() => r({a}+{b}), {a % 90}))", rf"{a + b}\r\n> $"
    return f"{a}+{b}", rf"{a + b}\r\n> $"


def _cat(dice: random.Random) -> tuple[str, str]:
    word = f"w{dice.randrange(10**9)}"
    return word, rf"{word}\r\n{word}\r\n$"


def _read(dice: random.Random) -> tuple[str, str]:
    word = f"w{dice.randrange(10**9)}"
    return word, rf"got-{word}\r\nname\? $"


def _dash(dice: random.Random) -> tuple[str, str]:
    a, b = dice.randrange(10_000), dice.randrange(10_000)
    return f"echo $(({a}+{b}))", rf"{a + b}\r\nd> $"


def _bash(dice: random.Random) -> tuple[str, str]:
    a, b = dice.randrange(10_000), dice.randrange(10_000)
    kind = dice.randrange(4)
    end = r"\r\n\x1b\]133;D;[0-9a-f]+;0\x07\$ $"
    if kind == 0:
        return f"echo $(({a}+{b}))", rf"{a + b}{end}"
    if kind == 1:
        lines = "\n".join(f"echo $(({a}+{n}))" for n in range(b % 9 + 2))
        return lines, rf"{a + b % 9 + 1}{end}"
    if kind == 2:
        return f"seq {a} | tail -n 1; sleep 0.0{b % 9}; echo $(({b}*2))", rf"{b * 2}{end}"
    return f"(echo $(({a}*3)) | cat | cat); echo $(({b}*3))", rf"{b * 3}{end}"


def _sqlite(dice: random.Random) -> tuple[str, str]:
    a, b = dice.randrange(10_000), dice.randrange(10_000)
    return f"select {a}+{b};", rf"{a + b}\r\nsqlite> $"


PROGRAMS = (
    Program("bash", "", _bash),
    Program("python3", "python3 -q", _python, "exit()", "python3"),
    Program("gdb", "gdb -q -nx", _gdb, "quit", "gdb"),
    Program("bc", "bc -q", _bc, "quit", "bc"),
    Program("node", "node", _node, ".exit", "node"),
    Program("cat", "cat", _cat, "\x04", leave_submits=False),
    Program(
        "read -p", "while read -p 'name? ' n && [ \"$n\" != - ]; do echo got-$n; done", _read, "-"
    ),
    Program("dash", "PS1='d> ' dash", _dash, "exit", "dash"),
    Program("sqlite3", "sqlite3", _sqlite, ".quit", "sqlite3"),
)


@dataclass
class Tally:
    """What came of the sends to one program."""

    sends: int = 0
    premature: int = 0
    unread: int = 0
    inferred: int = 0
    other: int = 0
    times_s: list[float] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)

    @property
    def faults(self) -> int:
        return self.premature + self.unread + self.inferred + self.other

    def row(self, name: str) -> str:
        times = sorted(self.times_s) or [0.0]
        p50 = statistics.median(times) * 1e3
        p99 = times[min(len(times) - 1, int(len(times) * 0.99))] * 1e3
        return (
            f"{name:10} sends {self.sends:5}  premature {self.premature}  unread {self.unread}"
            f"  inferred_idle {self.inferred}  other {self.other}"
            f"  p50 {p50:7.2f} ms  p99 {p99:7.2f} ms"
        )


async def turns(
    terminal: BareTerminal, program: Program, count: int, dice: random.Random, tally: Tally
) -> None:
    """Enter a program, take ``count`` turns, and leave it."""
    if program.start:
        await terminal.send(program.start)
    for _ in range(count):
        text, answer = program.turn(dice)
        await pause(dice.uniform(*THINK_MS) / 1000, "thinking time is the input")
        sent = await terminal.send(text)
        tally.sends += 1
        tally.times_s.append(sent.elapsed_s)
        if sent.reason == "inferred_idle":
            tally.inferred += 1
        elif sent.reason != "stdin_read":
            tally.other += 1
        if sent.unread:
            tally.unread += 1
        if re.search(answer.encode(), sent.raw) is None:
            tally.premature += 1
            tally.examples.append(f"{program.name}: {text!r} -> {sent.raw[-200:]!r}")
    if program.leave:
        await terminal.send(program.leave, submit=program.leave_submits)


async def run(sends: int, seed: int, names: list[str] | None = None) -> dict[str, Tally]:
    """Spread ``sends`` over the programs that are installed, in random order."""
    dice = random.Random(seed)
    usable = [
        program
        for program in PROGRAMS
        if (not names or program.name in names)
        and (not program.needs or shutil.which(program.needs) is not None)
    ]
    tallies = {program.name: Tally() for program in usable}
    async with await open_bash() as terminal:
        left = sends
        while left > 0:
            program = dice.choice(usable)
            count = min(left, dice.randrange(5, 30))
            await turns(terminal, program, count, dice, tallies[program.name])
            left -= count
    return tallies


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def _burn() -> None:
    while os.getppid() != 1:
        sum(range(10_000))


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sends", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--load", action="store_true", help="keep another core busy")
    parser.add_argument("--only", action="append", help="this program only (may be repeated)")
    options = parser.parse_args()
    burner = multiprocessing.Process(target=_burn, daemon=True) if options.load else None
    if burner is not None:
        burner.start()
    started = time.perf_counter()
    try:
        tallies = asyncio.run(run(options.sends, options.seed, options.only))
    finally:
        if burner is not None:
            burner.kill()
            burner.join()
    for name, tally in tallies.items():
        _say(tally.row(name))
        for example in tally.examples[:5]:
            _say("    " + example)
    faults = sum(tally.faults for tally in tallies.values())
    _say(f"{options.sends} sends in {time.perf_counter() - started:.0f} s, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
