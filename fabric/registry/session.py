"""One session as the registry sees it.

Theory. Every session is a record from its reservation to its proven end:

    OPENING --publish--> PUBLISHED --close--> CLOSING --closed--> (tombstone)
       |                     ^                   |
       | abort               +---close failed----+
       v
    ABORTING --rolled back--> (tombstone)
       |
       +--rollback failed--> UNCLEAN --closed--> (tombstone)

    PUBLISHED, CLOSING, UNCLEAN --lost--> (tombstone that says lost)

Only PUBLISHED and CLOSING are visible to their owner. A name is held from reservation on,
and released by everything but publication. UNCLEAN keeps counting as activity: something
of it may still run.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fabric.core.ids import HostName, OwnerId, SessionId
from fabric.core.model import SandboxMode, SessionInfo
from fabric.core.plain import from_plain, to_plain
from fabric.registry.instructions import Kind, Put

MAX_FAULT_CHARS = 500
FIRST_RETRY_S = 5.0  # failed cleanups are tried again after 5 s, then twice as long each time
LAST_RETRY_S = 60.0


class SessionState(StrEnum):
    """Where a session is in its life."""

    OPENING = "opening"
    ABORTING = "aborting"
    UNCLEAN = "unclean"
    PUBLISHED = "published"
    CLOSING = "closing"


VISIBLE = (SessionState.PUBLISHED, SessionState.CLOSING)
PENDING = (SessionState.OPENING, SessionState.ABORTING)


@dataclass(slots=True)
class Session:
    """One record. ``order`` is that of publication; ``revision`` the table's at its last step."""

    session_id: SessionId
    owner_id: OwnerId
    epoch: int
    type: str
    name: str | None
    mode: SandboxMode
    state: SessionState = SessionState.OPENING
    host: HostName | None = None
    order: int = 0
    info: SessionInfo | None = None
    fenced_epoch: int = 0
    revision: int = 0
    away_since: float | None = None
    fault: str = ""
    failures: int = 0
    retry_at: float = 0.0

    @property
    def is_visible(self) -> bool:
        """Tell whether the owner sees it."""
        return self.state in VISIBLE

    @property
    def is_pending(self) -> bool:
        """Tell whether an open of it is in flight."""
        return self.state in PENDING

    def failed(self, fault: str, now: float) -> None:
        """Note a failed cleanup and when to try again."""
        self.fault = fault[:MAX_FAULT_CHARS]
        self.failures += 1
        pause = min(LAST_RETRY_S, FIRST_RETRY_S * 2 ** min(self.failures - 1, 10))
        self.retry_at = now + pause

    def row(self) -> Put:
        """Return the row to write."""
        return Put(
            Kind.SESSION,
            self.session_id,
            {
                "owner_id": self.owner_id,
                "epoch": self.epoch,
                "type": self.type,
                "name": self.name,
                "mode": self.mode.value,
                "state": self.state.value,
                "host": self.host,
                "order": self.order,
                "info": None if self.info is None else to_plain(self.info),
                "fenced_epoch": self.fenced_epoch,
                "fault": self.fault,
            },
        )


def session_of(key: str, body: dict[str, Any]) -> Session:
    """Build a record from a row of the journal."""
    info = body["info"]
    return Session(
        SessionId(key),
        OwnerId(body["owner_id"]),
        int(body["epoch"]),
        str(body["type"]),
        body["name"],
        SandboxMode(body["mode"]),
        SessionState(body["state"]),
        body["host"],
        int(body["order"]),
        None if info is None else from_plain(SessionInfo, info),
        int(body["fenced_epoch"]),
        fault=str(body["fault"]),
    )
