"""The records of the table, kept consistent with their indexes.

Theory: a session record is in four places: by id, under its owner, under its name there,
and in its host's count. It enters and leaves all of them in one step, here, and leaves a
tombstone; with the last record of an owner that is being disposed of goes the owner.
"""

from collections import Counter
from collections.abc import Iterable

from fabric.core.errors import InternalError
from fabric.core.ids import HostName, SessionId
from fabric.core.settings import RegistrySettings
from fabric.registry.instructions import Drop, Instruction, Kind, OwnerGone, TasksLost
from fabric.registry.owners import Owner, Owners
from fabric.registry.session import Session, SessionState
from fabric.registry.tombstones import Tombstone, Tombstones


class Shelf:
    """Sessions by id, owner, name and host. ``revision`` counts changes of any record."""

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self.owners = Owners(settings)
        self.sessions: dict[SessionId, Session] = {}
        self.tombstones = Tombstones(
            retention_s=settings.tombstone_retention_s, max_entries=settings.max_tombstones
        )
        self.load: Counter[HostName] = Counter()
        self.revision = 0
        self._order = 0

    def insert_published(self, session: Session, owner: Owner) -> list[Instruction]:
        """Add a session that a node already runs, in order after the others."""
        self._order += 1
        session.order = self._order
        session.state = SessionState.PUBLISHED
        self._insert(session, owner)
        return [session.row()]

    def _of(self, owner: Owner) -> list[Session]:
        return [self.sessions[key] for key in owner.sessions]

    def _visible_of(self, owner: Owner) -> Iterable[Session]:
        return (session for session in self._of(owner) if session.is_visible)

    def _insert(self, session: Session, owner: Owner) -> None:
        self.sessions[session.session_id] = session
        owner.sessions[session.session_id] = None
        if session.name is not None:
            owner.names[session.name] = session.session_id
        if session.host is not None:
            self.load[session.host] += 1
        self._touch(session)

    def _place(self, session: Session, host: HostName | None) -> None:
        if session.host is not None:
            self.load[session.host] -= 1
            if not self.load[session.host]:
                del self.load[session.host]
        session.host = host
        if host is not None:
            self.load[host] += 1

    def _release_name(self, session: Session) -> None:
        owner = self.owners.find(session.owner_id)
        if owner is None or session.name is None:
            return
        if owner.names.get(session.name) == session.session_id:
            del owner.names[session.name]

    def _take_out(self, session: Session) -> Owner:
        owner = self.owners.find(session.owner_id)
        if owner is None:
            raise InternalError(f"session {session.session_id} has no owner")
        self._release_name(session)
        self._place(session, None)
        del self.sessions[session.session_id]
        del owner.sessions[session.session_id]
        return owner

    def _remove(self, session: Session, why: str, lost: bool, now: float) -> list[Instruction]:
        owner = self._take_out(session)
        self.revision += 1
        stone = Tombstone(owner.owner_id, why, lost, now, self.revision)
        return [
            Drop(Kind.SESSION, session.session_id),
            *self.tombstones.bury(session.session_id, stone),
            TasksLost(session.session_id, why),
            *self._bury_if_done(owner, now),
        ]

    def _bury_if_done(self, owner: Owner, now: float) -> list[Instruction]:
        if owner.is_live or owner.is_active:
            return []
        return [*self.owners.bury(owner, now, self.revision), OwnerGone(owner.owner_id)]

    def _touch(self, session: Session) -> None:
        self.revision += 1
        session.revision = self.revision
