"""``fabric load``: put load on a fabric, judge and compare what came of it."""

import asyncio
import contextlib
import io
import os
import signal
import sys
from pathlib import Path
from typing import Any

from fabric.cli.connect import gateway_of, tls_of, token_of
from fabric.cli.context import INTERRUPTED, Context
from fabric.core.errors import InvalidRequestError
from fabric.load import report, result
from fabric.load.compare import Row, compare, differences
from fabric.load.live import Live
from fabric.load.marks import judge
from fabric.load.plan import Plan, plan_of, read_plan
from fabric.load.processes import Watcher, find
from fabric.load.runner import Outcome, Runner
from fabric.load.users import Target

MISSED = 10
_HEADLINE = (
    "turns", "errors", "rate", "p50_ms", "p99_ms", "max_ms", "slowest_owner_ratio", "opens_rate",
    "session_pss_mb", "memory_growth", "cpu_ms_per_turn", "left_behind",
)  # fmt: skip
_FLAGS = (
    "owners", "sessions", "think_s", "pace_s", "rate", "spacing", "duration_s", "warmup_s",
    "ramp_s", "turns", "processes", "mode", "seed", "title", "task_s", "build_lines", "pollers",
)  # fmt: skip


def load(context: Context) -> int:
    """Run, compare or report; exit code 10 when a mark was missed or a figure got worse."""
    given = context.arguments
    words = list(given.words)
    if words[:1] == ["compare"]:
        return _compare(context, words[1:])
    if words[:1] == ["report"]:
        return _report(context, words[1:])
    if words not in ([], ["run"]):
        raise InvalidRequestError(
            f"{' '.join(words)!r}: fabric load, fabric load compare A B, or fabric load report A"
        )
    return _run(context)


def plan_from(context: Context) -> tuple[Plan, Any]:
    """Return plan and marks from the file and the flags over it. Raises: InvalidRequestError."""
    given = context.arguments
    plan, marks = read_plan(Path(given.plan)) if given.plan else (Plan(), ())
    row = {name: getattr(given, name) for name in _FLAGS if getattr(given, name) is not None}
    if given.scenario:
        row["scenarios"] = _scenarios(given.scenario)
    if "duration_s" in row and "warmup_s" not in row and plan.warmup_s >= row["duration_s"]:
        row["warmup_s"] = row["duration_s"] / 10  # a shorter run than planned has a shorter one
    return plan_of(row, plan), marks


def _scenarios(rows: list[str]) -> dict[str, int]:
    found = {}
    for row in rows:
        name, equals, weight = row.partition("=")
        if equals and not weight.isdecimal():
            raise InvalidRequestError(f"--scenario {row!r}: must read NAME or NAME=WEIGHT")
        found[name] = int(weight) if equals else 1
    return found


def _run(context: Context) -> int:
    given, output = context.arguments, context.output
    plan, marks = plan_from(context)
    paths = [Path(path) for path in (given.out, given.html) if path]
    for path in paths:
        if not path.parent.is_dir():
            raise InvalidRequestError(f"{path.parent} is no folder")  # not after the run
    before = os.getloadavg()[0]
    live = Live(plan, io.StringIO() if output.quiet else sys.stderr)
    watcher = _watcher(context)
    if watcher is None:
        output.note("the fabric is not this machine's: its processes are not sampled")
    runner = Runner(plan, target_of(context), watcher=watcher, said=live.say, seen=live.take)
    outcome = asyncio.run(_interruptible(context, runner, live))
    samples = watcher.samples if watcher else []
    found = result.build(plan, outcome, samples, before)
    verdicts = judge(marks, found["figures"])
    found = result.judged(found, verdicts)
    if given.out:
        result.write(found, Path(given.out))
    if given.html:
        result.write_text(Path(given.html), report.page(found))
    for warning in report.warnings_of(found):
        output.note(f"note: {warning}")
    output.result(found, _text(found), "")
    if outcome.interrupted:
        return INTERRUPTED
    worked = bool(found["figures"]["turns"]) and not outcome.failures
    return 0 if worked and all(item.passed for item in verdicts) else MISSED


async def _interruptible(context: Context, runner: Runner, live: Live) -> Outcome:
    """Run; the first Ctrl-C ends gracefully, the second kills the clients."""
    loop = asyncio.get_running_loop()
    interrupts = 0

    def interrupt() -> None:
        nonlocal interrupts
        interrupts += 1
        live.close()
        if interrupts > 1:
            context.output.note("forced: owners that are left end with their leases")
            runner.kill()
            return
        context.output.note("stopping: waiting for running turns and for owners to be released"
                            " (Ctrl-C again to force)")  # fmt: skip
        runner.stop()

    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, interrupt)
    try:
        return await runner.run()
    finally:
        live.close()
        for number in numbers:
            loop.remove_signal_handler(number)


def target_of(context: Context) -> Target:
    """Say whom to load: one or several gateways, with a comma between them."""
    named = gateway_of(context)
    gateways = tuple(part.strip() for part in named.split(",") if part.strip())
    return Target(gateways, token_of(context, gateways[0]), tls_of(context))


def _watcher(context: Context) -> Watcher | None:
    """Watch the processes of the fabric of the state folder, if that is the one to be loaded."""
    state = context.state
    record = state.record() if state.folder.is_dir() and state.is_up() else None
    if record is None or record.gateway not in gateway_of(context).split(","):
        return None
    from fabric.actors import cluster

    embedded = cluster.read(state.folder)
    mark = "" if embedded is None else embedded.mark
    return Watcher(lambda: find(state.folder, mark))


def _text(found: dict[str, Any]) -> str:
    lines = []
    for name in _HEADLINE:
        value = found["figures"][name]
        if value is not None:
            lines.append(f"{name:<22} {value:,.6g}")
    lines += [f"error  {count:>8}  {key}" for key, count in found["errors"].items()]
    lines += [f"error  {count:>8}  {key} (set-up)" for key, count in found["setup_errors"].items()]
    for row in found["marks"]:
        value = "not measured" if row["value"] is None else f"{row['value']:,.6g}"
        lines.append(f"{'pass' if row['passed'] else 'FAIL'}   {row['mark']:<34} {value}")
    return "\n".join(lines)


def _compare(context: Context, words: list[str]) -> int:
    if len(words) != 2:
        raise InvalidRequestError("fabric load compare takes two results: before and after")
    before, after = (result.read(Path(word)) for word in words)
    rows = compare(before, after, context.arguments.allowed / 100)
    for difference in differences(before, after):
        context.output.note(f"not alike: {difference}")
    worse = [row.figure for row in rows if row.worse]
    value = {
        "figures": {
            row.figure: {
                "before": row.before, "after": row.after, "change": row.change, "worse": row.worse,
            }
            for row in rows
        },
        "worse": worse,
    }  # fmt: skip
    context.output.result(value, "\n".join(_line(row) for row in rows), " ".join(worse))
    return MISSED if worse else 0


def _line(row: Row) -> str:
    def shown(value: float | None) -> str:
        return "-" if value is None else f"{value:,.6g}"

    change = "" if row.change is None else f"{row.change:+.1%}"
    mark = "  WORSE" if row.worse else ""
    return f"{row.figure:<24} {shown(row.before):>12} {shown(row.after):>12} {change:>9}{mark}"


def _report(context: Context, words: list[str]) -> int:
    if len(words) != 1:
        raise InvalidRequestError("fabric load report takes one result")
    found = result.read(Path(words[0]))
    text = report.page(found)
    if context.arguments.html:
        result.write_text(Path(context.arguments.html), text)
        context.output.note(f"written: {context.arguments.html}")
    else:
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.write(text)
    return 0
