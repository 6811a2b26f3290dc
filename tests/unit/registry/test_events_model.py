"""Event streams against a plain list: order, gaps, acknowledgement, bounds, a restart."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from fabric.core.errors import InvalidRequestError
from fabric.core.ids import OwnerId
from fabric.core.model import EventKind
from fabric.registry.events import Events
from fabric.registry.instructions import Announce, Drop, Kind, Put
from tests.support.models import model_settings

LIMIT = 5
OWNERS = [OwnerId("own_a"), OwnerId("own_b")]
owners = st.sampled_from(OWNERS)


class Streams(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.events = Events(max_events=LIMIT)
        self.told: dict[OwnerId, list[str]] = {owner: [] for owner in OWNERS}
        self.acknowledged = dict.fromkeys(OWNERS, 0)
        self.rows: dict[tuple[Kind, str], dict] = {}

    def write(self, changes) -> None:
        for change in changes:
            key = (change.kind, change.key)
            if isinstance(change, Put):
                self.rows[key] = change.body
            else:
                assert isinstance(change, Drop)
                self.rows.pop(key, None)

    def kept(self, owner: OwnerId) -> list[int]:
        last = len(self.told[owner])
        return [
            n for n in range(max(1, last - LIMIT + 1), last + 1) if n > self.acknowledged[owner]
        ]

    @rule(owner=owners)
    def announce(self, owner) -> None:
        detail = f"{owner} {len(self.told[owner]) + 1}"
        self.told[owner].append(detail)
        self.write(self.events.append(Announce(owner, EventKind.LEASE_EXPIRING, detail=detail), 0))

    @rule(owner=owners, cursor=st.none() | st.integers(0, 30), limit=st.integers(1, 4))
    def read(self, owner, cursor, limit) -> None:
        last = len(self.told[owner])
        if cursor is not None and cursor > last:
            try:
                self.events.read(owner, cursor, limit)
            except InvalidRequestError:
                return
            raise AssertionError("a cursor beyond the end was taken")
        seen = self.acknowledged[owner] if cursor is None else cursor
        wanted = [n for n in self.kept(owner) if n > seen]
        page = self.events.read(owner, cursor, limit)
        assert [event.sequence for event in page.events] == wanted[:limit]
        assert [event.detail for event in page.events] == [
            self.told[owner][n - 1] for n in wanted[:limit]
        ]
        first = wanted[0] if wanted else last + 1
        assert page.dropped == max(0, first - 1 - max(seen, self.acknowledged[owner]))
        assert self.events.has_news(owner, cursor) == (last > seen)

    @rule(owner=owners, back=st.integers(0, 6))
    def acknowledge(self, owner, back) -> None:
        sequence = max(0, len(self.told[owner]) - back)
        self.write(self.events.acknowledge(owner, sequence))
        self.acknowledged[owner] = max(self.acknowledged[owner], sequence)

    @rule()
    def restart(self) -> None:
        """The journal holds all that the stream was."""
        self.events = Events(max_events=LIMIT)
        for (kind, key), body in sorted(self.rows.items(), key=lambda row: row[0][1]):
            if kind is Kind.EVENT:
                self.events.restore_event(key, body)
            else:
                self.events.restore_stream(key, body)


TestStreams = Streams.TestCase
TestStreams.settings = model_settings()
