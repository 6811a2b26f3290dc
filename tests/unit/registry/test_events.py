"""The event streams with literals."""

import pytest

from fabric.core.errors import InvalidRequestError
from fabric.core.ids import OwnerId, SessionId, TaskId
from fabric.core.model import EventKind
from fabric.registry.events import Events, announce_task
from fabric.registry.instructions import Announce, Drop, Kind, Put

OWNER, OTHER = OwnerId("own_1"), OwnerId("own_2")


def streams(count: int, max_events: int = 100) -> Events:
    made = Events(max_events=max_events)
    for _ in range(count):
        made.append(Announce(OWNER, EventKind.LEASE_EXPIRING), 5.0)
    return made


def numbers(made: Events, cursor: int | None = 0, limit: int = 100) -> list[int]:
    return [event.sequence for event in made.read(OWNER, cursor, limit).events]


def test_events_are_numbered_from_one_and_read_from_a_cursor():
    made = streams(3)
    assert numbers(made) == [1, 2, 3]
    assert numbers(made, 2) == [3]
    assert numbers(made, 3) == []
    page = made.read(OWNER, 0, 2)
    assert [event.sequence for event in page.events] == [1, 2]
    assert (page.next_cursor, page.dropped, page.ended) == (2, 0, None)
    assert made.read(OWNER, page.next_cursor, 2).next_cursor == 3


def test_reading_changes_nothing_and_acknowledging_drops():
    made = streams(3)
    assert numbers(made) == numbers(made)
    out = made.acknowledge(OWNER, 2)
    assert out == [
        Put(Kind.STREAM, OWNER, {"acknowledged": 2}),
        Drop(Kind.EVENT, "own_1/000000000001"),
        Drop(Kind.EVENT, "own_1/000000000002"),
    ]
    assert made.acknowledge(OWNER, 1) == []
    assert numbers(made, None) == [3]
    assert made.read(OWNER, 0, 10).dropped == 0
    made.acknowledge(OWNER, 3)
    made.append(Announce(OWNER, EventKind.LEASE_EXPIRING), 5.0)
    assert numbers(made, None) == [4]


def test_overflow_is_told_as_a_number():
    made = streams(3)
    made.acknowledge(OWNER, 1)
    full = streams(0, max_events=2)
    for _ in range(5):
        out = full.append(Announce(OWNER, EventKind.LEASE_EXPIRING), 5.0)
    assert out[1] == Drop(Kind.EVENT, "own_1/000000000003")
    page = full.read(OWNER, 1, 10)
    assert ([event.sequence for event in page.events], page.dropped) == ([4, 5], 2)
    assert full.read(OWNER, 4, 10).dropped == 0


def test_streams_of_owners_are_apart():
    made = streams(2)
    assert made.read(OTHER, 0, 10).events == ()
    made.append(Announce(OTHER, EventKind.HUMAN_HANDBACK, SessionId("ses_1")), 1.0)
    assert made.read(OTHER, None, 10).events[0].session_id == "ses_1"


@pytest.mark.parametrize("cursor", [-1, 3])
def test_a_cursor_of_another_stream_is_refused(cursor: int):
    made = streams(2)
    with pytest.raises(InvalidRequestError, match="ends at 2"):
        made.read(OWNER, cursor, 10)
    with pytest.raises(InvalidRequestError):
        made.acknowledge(OWNER, cursor)
    with pytest.raises(InvalidRequestError):
        made.read(OWNER, 0, 0)


def test_the_end_comes_with_the_last_page():
    made = streams(1)
    made.append(Announce(OWNER, EventKind.OWNER_DISPOSED, detail="it was released"), 1.0)
    assert made.read(OWNER, 0, 1).ended is None
    assert made.read(OWNER, 1, 10).ended == "it was released"
    assert made.read(OWNER, 2, 10).ended == "it was released"
    assert made.has_news(OWNER, 2)
    nameless = streams(0)
    nameless.append(Announce(OWNER, EventKind.OWNER_DISPOSED), 1.0)
    assert nameless.read(OWNER, 0, 10).ended == "the owner was disposed of"


def test_news_is_what_a_read_would_return():
    made = streams(2)
    assert not made.has_news(OTHER, None)
    assert made.has_news(OWNER, 1)
    assert not made.has_news(OWNER, 2)
    made.acknowledge(OWNER, 2)
    assert not made.has_news(OWNER, None)


def test_an_ended_stream_is_there_for_who_is_being_woken_but_not_for_ever():
    made = streams(0)
    owners = [OwnerId(f"own_{number}") for number in range(300)]
    for owner in owners:
        made.append(Announce(owner, EventKind.OWNER_DISPOSED, detail="x"), 1.0)
        assert [item.key for item in made.drop_owner(owner)] == [f"{owner}/000000000001", owner]
        assert made.drop_owner(owner) == []
    assert made.has_news(owners[-1], 0)
    assert made.read(owners[-1], 0, 10).ended == "x"
    assert made.read(owners[0], 0, 10).events == ()


def test_details_are_bounded():
    made = streams(0)
    made.append(announce_task(OWNER, SessionId("s"), TaskId("t"), "x" * 999), 1.0)
    (event,) = made.read(OWNER, 0, 10).events
    assert (event.task_id, len(event.detail or "")) == ("t", 500)


def test_rows_bring_streams_back():
    made = streams(0)
    rows: dict[str, Put] = {}
    for kind in (EventKind.LEASE_EXPIRING, EventKind.SESSION_LOST, EventKind.OWNER_DISPOSED):
        for change in made.append(Announce(OWNER, kind, detail="why"), 1.0):
            assert isinstance(change, Put)
            rows[change.key] = change
    fresh = streams(0)
    for key in sorted(rows):
        fresh.restore_event(key, rows[key].body)
    assert fresh.read(OWNER, 0, 10) == made.read(OWNER, 0, 10)
    fresh.restore_stream(OWNER, {"acknowledged": 7})
    assert fresh.read(OWNER, None, 10).next_cursor == 7
