"""Run a case against a surface and say which of its expectations do not hold."""

import asyncio
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.support.cases import Case, resolve, text_of, with_index
from tests.support.eventually import pause, scaled
from tests.support.leaks import descendants


@dataclass
class StepResult:
    """What one step gave, in the words the checks use."""

    text: str = ""
    wait_reason: str | None = None
    status: str | None = None  # running, exited
    exit_code: int | None = None
    signal: str | None = None
    error: str | None = None  # a reason
    truncated: bool = False
    dropped: int = 0
    line_begin: int = 0
    line_end: int = 0
    survivors: list[str] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


class Surface(Protocol):
    """The verbs a case uses. A typed error is a result with ``error``, not an exception."""

    async def open(self, kind: str) -> StepResult: ...
    async def send(
        self, session: str, text: str, submit: bool, deadline_s: float | None
    ) -> StepResult: ...
    async def read(self, session: str, offset: int, count: int) -> StepResult: ...
    async def signal(self, session: str, name: str) -> StepResult: ...
    async def close(self, session: str) -> StepResult: ...
    async def list(self) -> StepResult: ...
    async def start_task(self, session: str, text: str) -> StepResult: ...
    async def task_output(self, task: str, wait: bool) -> StepResult: ...
    async def task_kill(self, task: str) -> StepResult: ...
    async def kill_service(self, signal: str) -> StepResult: ...


class CaseRun:
    """One run of one case."""

    def __init__(self, case: Case, surface: Surface) -> None:
        self.case = case
        self.results: dict[str, StepResult] = {}
        self._surface = surface
        self._names: dict[str, dict[str, str]] = {}
        self._faults: list[str] = []

    async def run(self) -> list[str]:
        """Perform every step, then check; returns the faults found."""
        await self._perform_all(self.case.steps, "")
        self._faults += check_all(self.case.expect, self.results)
        return self._faults

    async def _perform_all(self, steps: list[dict[str, Any]], prefix: str) -> None:
        for number, step in enumerate(steps):
            began = time.monotonic()
            result = await self._perform(step)
            result.seconds = time.monotonic() - began
            self.results[f"{prefix}{number}"] = result
            if "id" in step:
                self.results[step["id"]] = result
                self._names[step["id"]] = result.ids
            if "save" in step:
                self._names[step["save"]] = result.ids

    async def _perform(self, step: dict[str, Any]) -> StepResult:
        if "cancel_after" not in step:
            return await self._call(step)
        task = asyncio.ensure_future(self._call(step))
        _, late = await asyncio.wait({task}, timeout=step["cancel_after"])
        if not late:
            return task.result()
        task.cancel()
        await asyncio.wait({task})
        return StepResult(text="cancelled", error="CALL_CANCELLED")

    async def _call(self, step: dict[str, Any]) -> StepResult:
        verb, args = step["tool"], step["args"]
        handler = getattr(self, "_" + verb.replace(".", "_"))
        result: StepResult = await handler(args, step)
        return result

    def _id(self, args: dict[str, Any], key: str) -> str:
        return resolve(args[key], self._names)

    async def _terminal_open(self, args: dict[str, Any], _: Any) -> StepResult:
        return await self._surface.open(args["type"])

    async def _terminal_send(self, args: dict[str, Any], step: dict[str, Any]) -> StepResult:
        session, text = self._id(args, "sessionId"), text_of(args["text"])
        if args.get("run_in_background"):
            return await self._surface.start_task(session, text)
        deadline = step.get("deadline")
        return await self._surface.send(session, text, args.get("submit", True), deadline)

    async def _terminal_read(self, args: dict[str, Any], _: Any) -> StepResult:
        session = self._id(args, "sessionId")
        return await self._surface.read(session, args.get("offset", 0), args.get("count", 500))

    async def _terminal_signal(self, args: dict[str, Any], _: Any) -> StepResult:
        return await self._surface.signal(self._id(args, "sessionId"), args["signal"])

    async def _terminal_close(self, args: dict[str, Any], _: Any) -> StepResult:
        return await self._surface.close(self._id(args, "sessionId"))

    async def _terminal_list(self, args: dict[str, Any], _: Any) -> StepResult:
        return await self._surface.list()

    async def _task_output(self, args: dict[str, Any], _: Any) -> StepResult:
        return await self._surface.task_output(self._id(args, "taskId"), args.get("wait", False))

    async def _task_kill(self, args: dict[str, Any], _: Any) -> StepResult:
        return await self._surface.task_kill(self._id(args, "taskId"))

    async def _harness_sleep(self, args: dict[str, Any], _: Any) -> StepResult:
        await pause(args["seconds"], "the case is about what happens while time passes")
        return StepResult()

    async def _harness_exec(self, args: dict[str, Any], _: Any) -> StepResult:
        process = await asyncio.create_subprocess_exec(
            *args["argv"],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, _err = await process.communicate()
        return StepResult(text=out.decode(errors="replace"), exit_code=process.returncode)

    async def _harness_count(self, args: dict[str, Any], _: Any) -> StepResult:
        """Count the programs of this name below the test run, warm pools and all."""
        programs = [item.name.split()[0] for item in descendants() if item.name]
        return StepResult(text=str(sum(Path(name).name == args["name"] for name in programs)))

    async def _harness_loop(self, args: dict[str, Any], _: Any) -> StepResult:
        for index in range(args["n"]):
            prefix = f"loop{index}."
            await self._perform_all(with_index(args["steps"], index), prefix)
            for row in with_index(args.get("expect", []), index):
                step = f"{prefix}{row['step']}"
                self._faults += check(row, self.results[step], self.results, step)
        return StepResult()

    async def _harness_parallel(self, args: dict[str, Any], _: Any) -> StepResult:
        branches = enumerate(args["branches"])
        await asyncio.gather(
            *(self._perform_all(steps, f"branch{number}.") for number, steps in branches)
        )
        return StepResult()

    async def _harness_kill_service(self, args: dict[str, Any], _: Any) -> StepResult:
        return await self._surface.kill_service(args["signal"])


def check_all(rows: list[dict[str, Any]], results: dict[str, StepResult]) -> list[str]:
    """Check every expectation; returns the faults found."""
    faults = []
    for row in rows:
        step = str(row["step"])
        faults += check(row, results[step], results, step)
    return faults


def check(
    row: dict[str, Any], result: StepResult, results: dict[str, StepResult], step: str
) -> list[str]:
    """Check one expectation; returns the faults found, each with what was there."""
    faults = []
    for kind, wanted in row.items():
        if kind == "step":
            continue
        if kind == "any_of":
            found = [check(alternative, result, results, step) for alternative in wanted]
            if all(found):
                faults.append(" and ".join(rows[0] for rows in found))
        elif not _CHECKS[kind](result, wanted, results):
            faults.append(f"step {step}: {kind} {wanted!r} does not hold for {_shown(result)}")
    return faults


def _shown(result: StepResult) -> str:
    text = result.text if len(result.text) <= 600 else f"{result.text[:300]}...{result.text[-300:]}"
    facts = {key: value for key, value in vars(result).items() if key != "text" and value}
    return f"{text!r} {facts}"


def _lines(result: StepResult) -> list[str]:
    return [line.rstrip() for line in result.text.split("\n")]


def _has_sequence(result: StepResult, wanted: list[str], _: Any) -> bool:
    lines = _lines(result)
    return any(
        lines[start : start + len(wanted)] == wanted
        for start in range(len(lines) - len(wanted) + 1)
    )


def _is_contiguous(result: StepResult, newer: Any, results: dict[str, StepResult]) -> bool:
    """Counted back from the newest line, this page begins where the newer one ends."""
    after = results[str(newer)]
    numbers = [int(found) for found in re.findall(r"\bL(\d+)\b", result.text + "\n" + after.text)]
    in_order = numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else False
    return result.line_begin == after.line_end and in_order


def _signal_matches(result: StepResult, wanted: Any, _: Any) -> bool:
    return result.signal in (wanted, f"SIG{wanted}", str(wanted))


_CHECKS: dict[str, Any] = {
    "expect_contains": lambda r, w, _: all(text in r.text for text in w),
    "expect_not_contains": lambda r, w, _: not any(text in r.text for text in w),
    "expect_line_equals": lambda r, w, _: all(text in _lines(r) for text in w),
    "expect_line_sequence": _has_sequence,
    "expect_regex": lambda r, w, _: all(re.search(pattern, r.text) for pattern in w),
    "expect_not_regex": lambda r, w, _: not any(re.search(pattern, r.text) for pattern in w),
    "expect_count": lambda r, w, _: all(r.text.count(text) == n for text, n in w.items()),
    "expect_wait_reason": lambda r, w, _: r.wait_reason in w,
    "expect_status": lambda r, w, _: r.status == w,
    "expect_exit_code": lambda r, w, _: r.exit_code == w,
    "expect_signal": _signal_matches,
    "expect_error": lambda r, w, _: (r.error is not None) == w,
    "expect_dropped": lambda r, w, _: (r.dropped > 0) == w,
    "expect_truncated": lambda r, w, _: r.truncated == w,
    "max_seconds": lambda r, w, _: r.seconds <= scaled(w),
    "max_bytes": lambda r, w, _: len(r.text.encode()) <= w,
    "pages_contiguous_with": _is_contiguous,
    "same_as": lambda r, w, results: r.text == results[w].text,
    "not_more_than": lambda r, w, results: int(r.text) <= int(results[w].text),
    "survivors_named_by_step": lambda r, w, results: bool(results[str(w)].survivors),
    "expect_warning_at_step": lambda r, w, results: results[str(w)].error is not None,
}
