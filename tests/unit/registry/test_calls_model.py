"""Repeatable calls against a model: no work runs twice, every caller gets its answer."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fabric.core.clock import ManualClock
from fabric.core.errors import FabricError, RequestIdConflictError, SpawnFailedError
from fabric.core.ids import RequestId
from fabric.registry.calls import Calls, Ticket
from fabric.registry.instructions import Change, Kind, Put
from tests.support.models import model_settings

RETENTION_S = 60.0
IDS = st.sampled_from(["r1", "r2", "r3"])
CONTENT = st.sampled_from([b"a", b"b"])
INDEX = st.integers(0, 9)


@dataclass(eq=False)
class Work:
    """One run of one call's work, ended by the test."""

    request: str
    content: bytes
    number: int
    end: "asyncio.Future[int]"
    rolled_back: bool = False
    outcome: str = "running"
    ended_at: float = 0.0


@dataclass(eq=False)
class Caller:
    request: str
    content: bytes
    task: "asyncio.Task[int]"
    gone: bool = False


@dataclass
class State:
    works: list[Work] = field(default_factory=list)
    callers: list[Caller] = field(default_factory=list)


class CallsModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.rows: dict[str, Put] = {}
        self.calls = Calls(
            retention_s=RETENTION_S, max_entries=100, clock=self.clock, write=self.write
        )
        self.state = State()
        self.undone: list[int] = []

    def write(self, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, Put):
                self.rows[change.key] = change
            else:
                self.rows.pop(change.key, None)

    def settle_loop(self) -> None:
        async def turns() -> None:
            for _ in range(12):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turns())

    def live(self, request: str) -> Work | None:
        """The run whose answer holds for this id now."""
        for work in reversed(self.state.works):
            if work.request != request:
                continue
            if work.outcome == "running":
                return work
            if work.outcome == "done" and self.clock.monotonic() - work.ended_at < RETENTION_S:
                return work
            return None
        return None

    @initialize()
    def begin(self) -> None:
        self.call("r1", b"a")

    @rule(request=IDS, content=CONTENT)
    def call(self, request: str, content: bytes) -> None:
        before = len(self.state.works)
        held = self.live(request)
        ticket = Ticket("own_1", RequestId(request), content, "open")

        async def work() -> int:
            run = Work(request, content, len(self.state.works), self.loop.create_future())
            self.state.works.append(run)
            self.write([self.calls.begun(ticket)])
            try:
                answer = await run.end
            except asyncio.CancelledError:
                run.outcome = "rolled back"
                raise
            except FabricError:
                run.outcome = "failed"
                raise
            run.outcome, run.ended_at = "done", self.clock.monotonic()
            self.write([self.calls.settled(ticket, answer)])
            return answer

        async def undo(answer: int) -> None:
            self.undone.append(answer)
            self.state.works[answer].outcome = "undone"

        async def caller() -> int:
            return await self.calls.run(ticket, work, revocable=True, undo=undo)

        task = self.loop.create_task(caller())
        self.settle_loop()
        if held is None:
            assert len(self.state.works) == before + 1
            self.state.callers.append(Caller(request, content, task))
        else:
            assert len(self.state.works) == before, "a call that runs or is answered ran again"
            if held.content != content:
                assert isinstance(task.exception(), RequestIdConflictError)
                return
            if held.outcome == "done":
                assert task.result() == held.number
            else:
                assert not task.done()
            self.state.callers.append(Caller(request, content, task))

    @rule(request=IDS, ok=st.booleans())
    def end(self, request: str, ok: bool) -> None:
        held = self.live(request)
        if held is None or held.outcome != "running":
            return
        waiting = [c for c in self.state.callers if c.request == request and not c.task.done()]
        if ok:
            held.end.set_result(held.number)
        else:
            held.end.set_exception(SpawnFailedError("no"))
        self.settle_loop()
        for caller in waiting:
            if ok:
                assert caller.task.result() == held.number
            else:
                assert isinstance(caller.task.exception(), SpawnFailedError)

    @rule(index=INDEX, at_the_end=st.booleans())
    def leave(self, index: int, at_the_end: bool) -> None:
        waiting = [caller for caller in self.state.callers if not caller.task.done()]
        if not waiting:
            return
        caller = waiting[index % len(waiting)]
        others = [c for c in waiting if c.request == caller.request and c is not caller]
        held = self.live(caller.request)
        assert held is not None
        if at_the_end:  # the answer comes in the same step in which the caller goes
            held.end.set_result(held.number)
        caller.task.cancel()
        caller.gone = True
        self.settle_loop()
        assert caller.task.cancelled()
        if others:
            assert held.outcome == ("done" if at_the_end else "running")
        else:
            assert held.outcome in ("rolled back", "undone")

    @rule(seconds=st.sampled_from([1, 30, 61]))
    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.write(self.calls.tick())
        for row in self.rows.values():
            at = row.body["settled_at"]
            assert at is None or self.clock.wall() - at < RETENTION_S

    @rule()
    def restart(self) -> None:
        """Restore the answered calls; the running ones end here."""
        for work in self.state.works:
            if work.outcome == "running":
                return
        fresh = Calls(retention_s=RETENTION_S, max_entries=100, clock=self.clock, write=self.write)
        for row in sorted(self.rows.values(), key=lambda item: float(item.body["settled_at"])):
            scope, _, request = row.key.partition("\n")
            digest = bytes.fromhex(row.body["digest"])
            ticket = Ticket(scope, RequestId(request), digest, "open")
            fresh.restore(ticket, row.body["answer"], row.body["settled_at"])
        self.calls = fresh

    @invariant()
    def one_run_at_a_time(self) -> None:
        for request in ("r1", "r2", "r3"):
            running = [
                work for work in self.state.works
                if work.request == request and work.outcome == "running"
            ]  # fmt: skip
            assert len(running) <= 1
            waiting = [c for c in self.state.callers if c.request == request and not c.task.done()]
            assert bool(waiting) == bool(running), "work without a caller, or the reverse"

    @invariant()
    def rows_follow_the_runs(self) -> None:
        for request in ("r1", "r2", "r3"):
            held = self.live(request)
            row = self.rows.get(f"own_1\n{request}")
            if held is not None:
                assert row is not None
                assert (row.body["settled_at"] is None) == (held.outcome == "running")
                assert row.kind is Kind.REQUEST
            elif row is not None:
                assert row.body["settled_at"] is not None

    def teardown(self) -> None:
        self.loop.run_until_complete(self.calls.stop())
        self.settle_loop()
        assert all(caller.task.done() for caller in self.state.callers)
        for caller in self.state.callers:
            if not caller.task.cancelled():
                caller.task.exception()
        self.loop.close()


TestCallsModel = pytest.mark.timeout(120)(CallsModel.TestCase)
TestCallsModel.settings = model_settings()
