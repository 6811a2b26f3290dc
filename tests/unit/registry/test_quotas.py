"""What was laid down for a principal binds all its owners together."""

from pathlib import Path

import pytest

from fabric.core.errors import CapacityReachedError, PermissionDeniedError
from fabric.core.ids import AgentId, OwnerId, Principal, SessionId
from fabric.core.model import Caller, SandboxMode, SessionInfo, SessionStatus
from fabric.core.settings import RegistrySettings
from fabric.registry.table import Table
from tests.unit.registry.desk import desk

BOUND, FREE = Principal("bound"), Principal("free")
ROW = "bound max_sessions=3 max_opens=2 max_tasks=2 max_mode=workspace-write"


def _table() -> Table:
    return Table(RegistrySettings(policies=(ROW,), default_mode=SandboxMode.DANGER_FULL_ACCESS))


def _owner(table: Table, key: str, principal: Principal, mode: SandboxMode | None = None) -> Caller:
    owner, _ = table.acquire(principal, AgentId(key), mode, None, OwnerId(f"own_{key}"), 0.0)
    return Caller(owner.owner_id, owner.epoch)


def _publish(table: Table, caller: Caller, key: str) -> None:
    session_id = SessionId(key)
    table.publish(session_id, SessionInfo(session_id, caller.owner_id, "shell", SessionStatus()))


def test_opens_in_flight_and_sessions_are_counted_over_all_owners():
    table = _table()
    one, two = _owner(table, "1", BOUND), _owner(table, "2", BOUND)
    table.reserve(one, SessionId("a"), "shell", None)
    table.reserve(two, SessionId("b"), "shell", None)
    with pytest.raises(CapacityReachedError, match="2 of 2 opens in flight"):
        table.reserve(one, SessionId("c"), "shell", None)
    _publish(table, one, "a")
    table.reserve(one, SessionId("c"), "shell", None)
    _publish(table, two, "b")
    with pytest.raises(CapacityReachedError, match="3 of 3 sessions"):
        table.reserve(two, SessionId("d"), "shell", None)
    other = _owner(table, "3", FREE)
    for number in range(5):
        table.reserve(other, SessionId(f"f{number}"), "shell", None)


def test_the_mode_is_bound_and_so_is_the_default():
    table = _table()
    with pytest.raises(PermissionDeniedError, match="workspace-write"):
        _owner(table, "1", BOUND, SandboxMode.DANGER_FULL_ACCESS)
    caller = _owner(table, "1", BOUND)
    assert table.owners.authorise(caller).mode is SandboxMode.WORKSPACE_WRITE
    with pytest.raises(PermissionDeniedError):
        table.owners.set_mode(caller, SandboxMode.DANGER_FULL_ACCESS)
    free = _owner(table, "2", FREE)
    assert table.owners.authorise(free).mode is SandboxMode.DANGER_FULL_ACCESS


async def test_tasks_are_counted_over_all_owners(tmp_path: Path):
    async with desk(tmp_path, settings=RegistrySettings(policies=("p max_tasks=2",))) as d:
        one, two = await d.acquire("a1"), await d.acquire("a2")
        here = await d.opened(one)
        there = await d.opened(two)
        await d.registry.reserve_task(one, here, "x")
        task = await d.registry.reserve_task(two, there, "x")
        with pytest.raises(CapacityReachedError, match="2 of 2 background tasks"):
            await d.registry.reserve_task(one, here, "x")
        await d.registry.forget_task(task)
        await d.registry.reserve_task(one, here, "x")
