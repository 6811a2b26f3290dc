"""How long a call may wait, and who ends it."""

import asyncio

import pytest

from fabric.core.errors import DeadlineError, DrainingError, UnauthenticatedError
from fabric.core.ids import OwnerId
from fabric.core.model import Caller
from fabric.core.settings import GatewaySettings
from fabric.gateway.auth import LOCAL
from fabric.gateway.calls import DEADLINE_ROUNDING, Call
from fabric.wire.methods import METHODS

SETTINGS = GatewaySettings(deadline_margin_s=0.25, default_deadline_s=120.0)
METHOD = METHODS["TerminalService.Send"]


@pytest.fixture
async def task():
    task = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)
    yield task
    task.cancel()
    await asyncio.wait({task})


def _call(task, remaining_s=None, caller=None) -> Call:
    return Call(METHOD, LOCAL, caller, task, remaining_s, SETTINGS)


async def test_a_wait_stays_below_the_deadline_as_grpc_rounds_it(task):
    call = _call(task, 10.0)
    assert call.wait_s(None, 30.0, 600.0) == pytest.approx(10 / DEADLINE_ROUNDING - 0.25, abs=0.01)
    assert call.wait_s(3.0, 30.0, 600.0) == 3.0
    assert call.wait_s(5000.0, 30.0, 6.0) == 6.0
    call.bound(0.0)
    await asyncio.sleep(0)
    assert not task.cancelling(), "the caller's own deadline is bound enough"


@pytest.mark.parametrize("remaining_s", [0.0, 0.1, 0.25, 0.252])
async def test_a_deadline_without_room_is_an_error(task, remaining_s):
    with pytest.raises(DeadlineError):
        _call(task, remaining_s).wait_s(None, 30.0, 600.0)


async def test_without_a_deadline_the_wait_is_what_was_asked(task):
    call = _call(task)
    assert call.wait_s(500.0, 30.0, 600.0) == 500.0
    assert call._timer.when() - asyncio.get_running_loop().time() == pytest.approx(620.0, abs=0.1)
    timer = call._timer
    call.unbound()
    assert timer.cancelled()
    call.unbound()


async def test_the_first_to_end_a_call_gives_the_reason(task):
    call = _call(task)
    first = DrainingError("bye")
    call.end(first)
    call.end(DeadlineError("late"))
    assert call.ending is first
    assert task.cancelling() == 1


async def test_a_call_its_caller_has_left_is_not_ended_again(task):
    call = _call(task)
    task.cancel()
    call.end(DrainingError("bye"))
    assert call.ending is None
    assert task.cancelling() == 1


async def test_a_call_without_an_owner_says_so(task):
    call = _call(task)
    assert call.owner_id is None
    with pytest.raises(UnauthenticatedError, match="acquire an owner first"):
        _ = call.caller
    owned = _call(task, caller=Caller(OwnerId("own_a"), 1))
    assert (owned.owner_id, owned.caller.epoch) == ("own_a", 1)
