"""The cases of public bug reports that concern input, prompts and readiness, on a bare PTY."""

import shutil
import signal

import pytest

from fabric.core.errors import FabricError
from fabric.core.settings import ReadinessSettings
from tests.support.bare import BareTerminal, Sent, open_bash
from tests.support.case_runner import CaseRun, StepResult
from tests.support.cases import Case, load_cases

CATEGORIES = {
    "input-fidelity", "shell-syntax", "readiness", "repl", "shell-hostility", "signals-jobs",
}  # fmt: skip
VERBS = {
    "terminal_open", "terminal_send", "terminal_read", "terminal_signal", "terminal_close",
    "harness.sleep", "harness.exec",
}  # fmt: skip
NEEDS_TIMEOUT = {"C15-timeout-leaves-session-usable": 6.0}
CASES = [case for case in load_cases() if case.category in CATEGORIES and case.tools <= VERBS]


class BareSurface:
    """The verbs of a case over one bare terminal."""

    def __init__(self, settings: ReadinessSettings) -> None:
        self._settings = settings
        self.terminal: BareTerminal | None = None

    async def open(self, kind: str) -> StepResult:
        assert kind == "shell"
        self.terminal = await open_bash(settings=self._settings)
        return StepResult(ids={"sessionId": "S1"}, status="running")

    async def send(
        self, session: str, text: str, submit: bool, deadline_s: float | None
    ) -> StepResult:
        assert self.terminal is not None
        try:
            sent = await self.terminal.send(text, submit=submit, timeout_s=deadline_s)
        except FabricError as error:
            return StepResult(error.message, error=error.reason)
        return self._result(sent)

    async def read(self, session: str, offset: int, count: int) -> StepResult:
        assert self.terminal is not None
        page = self.terminal.transcript.page(offset, count, 262_144)
        return StepResult(page.text)

    async def signal(self, session: str, name: str) -> StepResult:
        assert self.terminal is not None
        group = await self.terminal.signal(signal.Signals[name])
        return StepResult(f"delivered to {group}")

    async def close(self, session: str) -> StepResult:
        assert self.terminal is not None
        await self.terminal.__aexit__(None, None, None)
        return StepResult("closed")

    def _result(self, sent: Sent) -> StepResult:
        assert self.terminal is not None
        code = self.terminal.process.returncode
        return StepResult(
            sent.text,
            wait_reason=sent.reason,
            status="running" if code is None else "exited",
            exit_code=code if code is not None and code >= 0 else None,
            signal=signal.Signals(-code).name if code is not None and code < 0 else None,
        )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.timeout(90)
async def test_case_of_a_bug_report_has_its_right_outcome(case: Case) -> None:
    missing = [program for program in case.requires if shutil.which(program) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    timeout = NEEDS_TIMEOUT.get(case.id, 30.0)
    surface = BareSurface(ReadinessSettings(timeout_s=timeout))
    try:
        faults = await CaseRun(case, surface).run()
    finally:
        if surface.terminal is not None:
            await surface.terminal.__aexit__(None, None, None)
    assert not faults, "\n".join(faults)
