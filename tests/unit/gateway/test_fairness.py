"""Turns: who is alone is never held up, who shares has its share, nobody's line moves another's."""

import asyncio

import pytest

from fabric.core.errors import QueueFullError
from fabric.gateway.fairness import Turn, Turns


async def _settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def _begin(turns: Turns, owner: str, count: int, hold_s: float = 60.0) -> list:
    return [asyncio.ensure_future(turns.take(owner, hold_s)) for _ in range(count)]


def _had(tasks: list) -> list[Turn]:
    return [task.result() for task in tasks if task.done()]


async def test_an_owner_alone_is_never_held_up():
    turns = Turns(share=2, max_line=10)
    calls = _begin(turns, "a", 50)
    await _settle()
    assert len(_had(calls)) == 50
    for turn in _had(calls):
        turn.end()
        turn.end()
    assert len(turns) == 0


async def test_while_another_calls_too_a_flood_has_its_share_and_the_other_never_waits():
    turns = Turns(share=2, max_line=100)
    first = await turns.take("b", 60.0)
    flood = _begin(turns, "a", 50)
    await _settle()
    assert len(_had(flood)) == 2
    other = _begin(turns, "b", 1)
    await _settle()
    assert len(_had(other)) == 1
    _had(flood)[0].end()
    await _settle()
    assert len(_had(flood)) == 3, "first come, first served"
    assert flood[2].done()
    for turn in (first, *_had(other)):
        turn.end()
    for call in flood:
        (await call).end()
    assert len(turns) == 0


async def test_a_turn_ends_by_itself_however_long_its_call_lasts():
    turns = Turns(share=1, max_line=10)
    (await turns.take("b", 60.0)).end()
    calls = _begin(turns, "a", 3, hold_s=0.001)
    await asyncio.wait_for(asyncio.gather(*calls), 5)
    for turn in _had(calls):
        turn.end()
    assert len(turns) == 0


async def test_a_line_is_bounded():
    turns = Turns(share=1, max_line=2)
    (await turns.take("b", 60.0)).end()
    calls = _begin(turns, "a", 3)
    await _settle()
    with pytest.raises(QueueFullError, match="2 calls in line"):
        await turns.take("a")
    (await turns.take("b", 60.0)).end()
    for call in calls:
        (await call).end()
    assert len(turns) == 0


async def test_a_call_that_goes_away_leaves_its_place():
    turns = Turns(share=1, max_line=10)
    (await turns.take("b", 60.0)).end()
    calls = _begin(turns, "a", 3)
    await _settle()
    calls[1].cancel()
    await _settle()
    _had(calls[:1])[0].end()
    await _settle()
    assert calls[2].done()
    calls[2].result().end()
    assert len(turns) == 0


async def test_a_turn_that_comes_just_as_its_call_goes_away_is_passed_on():
    turns = Turns(share=1, max_line=10)
    (await turns.take("b", 60.0)).end()
    calls = _begin(turns, "a", 3)
    await _settle()
    _had(calls[:1])[0].end()  # hands the turn to the second, which has not run yet
    calls[1].cancel()
    await _settle()
    assert calls[1].cancelled()
    (await calls[2]).end()
    assert len(turns) == 0
