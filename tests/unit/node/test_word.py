"""What a node hands on of the registry's word."""

import asyncio
from types import SimpleNamespace
from typing import Any

from fabric.core.errors import SessionLostError
from fabric.core.ids import SessionId
from workers.held import Held
from workers.word import Word


class Channel:
    """A worker that notes what it is told."""

    is_open = True

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.fault: Exception | None = None

    async def call(self, method: str, args: dict[str, Any], timeout_s: float) -> None:
        if self.fault is not None:
            raise self.fault
        self.told.append(args)


def held(name: str) -> tuple[Held, Channel]:
    channel = Channel()
    made = Held(config=SimpleNamespace(slot_id=name))  # type: ignore[arg-type]
    made.channel = channel  # type: ignore[assignment]
    made.spec = SimpleNamespace(session_id=SessionId(name))  # type: ignore[assignment]
    return made, channel


def give(word: Word, rows: list[Held], epochs: dict[str, int], at: float, span: float | None):
    named = {SessionId(key): value for key, value in epochs.items()}
    asyncio.run(word.give(rows, named, at, span))


def test_only_named_sessions_are_told_and_with_their_epoch():
    first, told = held("a")
    second, untold = held("b")
    give(Word(), [first, second], {"a": 7}, at=100.0, span=30.0)
    assert told.told == [{"session_id": "a", "epoch": 7, "until": 130.0}]
    assert untold.told == []


def test_a_worker_is_told_again_after_a_quarter_of_the_span_and_not_at_every_poll():
    row, channel = held("a")
    word = Word()
    for at in (100.0, 102.0, 106.0, 108.0, 110.0):
        give(word, [row], {"a": 1}, at, span=30.0)
    assert [item["until"] for item in channel.told] == [130.0, 138.0]
    assert word.until == 140.0


def test_an_old_message_extends_nothing():
    row, channel = held("a")
    word = Word()
    give(word, [row], {"a": 1}, at=100.0, span=30.0)
    give(word, [row], {"a": 1}, at=90.0, span=30.0)
    assert [item["until"] for item in channel.told] == [130.0]


def test_where_the_registry_is_word_is_said_once_and_for_ever():
    row, channel = held("a")
    word = Word()
    for at in (1.0, 2.0, 3.0):
        give(word, [row], {"a": 1}, at, span=None)
    assert [item["until"] for item in channel.told] == [None]
    give(word, [row], {"a": 1}, 4.0, span=30.0)
    assert channel.told[-1]["until"] == 34.0, "the registry has moved away"


def test_a_worker_that_was_away_is_told_with_the_next_word():
    row, channel = held("a")
    word = Word()
    channel.fault = SessionLostError("gone")
    give(word, [row], {"a": 1}, 100.0, span=30.0)
    channel.fault = None
    give(word, [row], {"a": 1}, 102.0, span=30.0)
    assert [item["until"] for item in channel.told] == [132.0]
