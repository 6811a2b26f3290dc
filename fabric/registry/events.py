"""One ordered stream of events for each owner.

Theory. Events are numbered from 1 without gaps. A reader's cursor is the number of the
last event it has seen; reading changes nothing, so a reply that got lost is read again.
Acknowledging drops what was seen. A stream holds at most ``max_events`` events, the oldest
go first; a reader that missed any is told how many, so a gap is never silent. The number
of the next event is one more than the larger of the newest held and the acknowledged one,
which is why overflow drops from the old end only.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any

from fabric.core.errors import InvalidRequestError
from fabric.core.ids import OwnerId, SessionId, TaskId
from fabric.core.model import EventKind, EventPage, OwnerEvent
from fabric.core.plain import from_plain, to_plain
from fabric.registry.instructions import Announce, Change, Drop, Kind, Put

MAX_DETAIL_CHARS = 500
MAX_ENDED = 256  # ended streams kept in memory, for readers that wait at that moment


@dataclass(slots=True)
class _Stream:
    events: deque[OwnerEvent] = field(default_factory=deque)
    acknowledged: int = 0
    last: int = 0
    ended: str | None = None


class Events:
    """The streams of all owners."""

    def __init__(self, *, max_events: int) -> None:
        self._max_events = max_events
        self._streams: dict[OwnerId, _Stream] = {}
        self._ended: OrderedDict[OwnerId, _Stream] = OrderedDict()

    def append(self, announced: Announce, at: float) -> list[Change]:
        """Add an event, dropping the oldest when the stream is full."""
        stream = self._streams.setdefault(announced.owner_id, _Stream())
        stream.last += 1
        detail = None if announced.detail is None else announced.detail[:MAX_DETAIL_CHARS]
        event = OwnerEvent(
            stream.last, announced.kind, at, announced.session_id, announced.task_id, detail
        )
        stream.events.append(event)
        if announced.kind is EventKind.OWNER_DISPOSED:
            stream.ended = detail or "the owner was disposed of"
        out: list[Change] = [Put(Kind.EVENT, _key(announced.owner_id, event), to_plain(event))]
        while len(stream.events) > self._max_events:
            out.append(Drop(Kind.EVENT, _key(announced.owner_id, stream.events.popleft())))
        return out

    def read(self, owner_id: OwnerId, cursor: int | None, limit: int) -> EventPage:
        """Return up to ``limit`` events after ``cursor`` (None: after the acknowledged ones).

        ``ended`` is set once the page holds the last event there will be.
        Raises: InvalidRequestError.
        """
        stream = self._streams.get(owner_id) or self._ended.get(owner_id) or _Stream()
        seen = stream.acknowledged if cursor is None else cursor
        if limit < 1:
            raise InvalidRequestError("the number of events to read must be at least 1")
        self._check(stream, seen)
        events = []
        for event in stream.events:
            if event.sequence > seen:
                events.append(event)
                if len(events) == limit:
                    break
        oldest = stream.events[0].sequence if stream.events else stream.last + 1
        dropped = max(0, oldest - 1 - max(seen, stream.acknowledged))
        after = events[-1].sequence if events else max(seen, stream.last)
        ended = stream.ended if after >= stream.last else None
        return EventPage(tuple(events), after, dropped, ended)

    def acknowledge(self, owner_id: OwnerId, sequence: int) -> list[Change]:
        """Drop the events up to ``sequence``. Raises: InvalidRequestError."""
        stream = self._streams.setdefault(owner_id, _Stream())
        self._check(stream, sequence)
        if sequence <= stream.acknowledged:
            return []
        stream.acknowledged = sequence
        out: list[Change] = [Put(Kind.STREAM, owner_id, {"acknowledged": sequence})]
        while stream.events and stream.events[0].sequence <= sequence:
            out.append(Drop(Kind.EVENT, _key(owner_id, stream.events.popleft())))
        return out

    def has_news(self, owner_id: OwnerId, cursor: int | None) -> bool:
        """Tell whether a read from ``cursor`` would return something at once."""
        stream = self._streams.get(owner_id) or self._ended.get(owner_id)
        if stream is None:
            return False
        seen = stream.acknowledged if cursor is None else cursor
        return stream.last > seen or stream.ended is not None

    def has_ended(self, owner_id: OwnerId) -> bool:
        """Tell whether a stream that ended a moment ago can still be read to its end."""
        return owner_id in self._ended

    def drop_owner(self, owner_id: OwnerId) -> list[Change]:
        """Forget an owner's stream but for readers that are just being woken by its end."""
        stream = self._streams.pop(owner_id, None)
        if stream is None:
            return []
        self._ended[owner_id] = stream
        while len(self._ended) > MAX_ENDED:
            self._ended.popitem(last=False)
        rows: list[Change] = [Drop(Kind.EVENT, _key(owner_id, event)) for event in stream.events]
        return [*rows, Drop(Kind.STREAM, owner_id)]

    def restore_event(self, key: str, body: dict[str, Any]) -> None:
        """Put back an event of the journal; rows come in the order of their keys."""
        owner_id = OwnerId(key.partition("/")[0])
        stream = self._streams.setdefault(owner_id, _Stream())
        event = from_plain(OwnerEvent, body)
        stream.events.append(event)
        stream.last = max(stream.last, event.sequence)
        if event.kind is EventKind.OWNER_DISPOSED:
            stream.ended = event.detail or "the owner was disposed of"

    def restore_stream(self, key: str, body: dict[str, Any]) -> None:
        """Put back what an owner has acknowledged."""
        stream = self._streams.setdefault(OwnerId(key), _Stream())
        stream.acknowledged = int(body["acknowledged"])
        stream.last = max(stream.last, stream.acknowledged)

    @staticmethod
    def _check(stream: _Stream, sequence: int) -> None:
        if not 0 <= sequence <= stream.last:
            raise InvalidRequestError(
                f"event cursor {sequence} is not one of this stream, which ends at {stream.last}",
                field="cursor",
            )


def announce_task(
    owner_id: OwnerId, session_id: SessionId, task_id: TaskId, detail: str
) -> Announce:
    """Say that a task has settled."""
    return Announce(owner_id, EventKind.TASK_SETTLED, session_id, task_id, detail)


def _key(owner_id: OwnerId, event: OwnerEvent) -> str:
    return f"{owner_id}/{event.sequence:012d}"
