"""The table: owners, sessions, names, modes and limits as one pure machine.

Theory. Each method is a stimulus: it checks, changes the table, and returns instructions;
it never waits, reads no clock and draws no ids, so a log of stimuli replays any run. A
refusal is a typed error raised before anything has changed. Methods that report an
effect (``rolled_back``, ``closed``, ...) accept reports that come late, for objects that
are gone by then, and do nothing.

Order of checks of an open: the owner is live and the epoch is its own, the name is free,
the owner's limits; only then an id is used. The states of a session are in ``session``,
those of an owner in ``owners``, what nodes report in ``reconcile``. All invariants are
per owner, except that ids are never used twice and that ``load`` counts per host.
"""

from fabric.core.errors import (
    CancelledCallError,
    CapacityReachedError,
    ForeignSessionError,
    InternalError,
    NameTakenError,
    SessionLostError,
    SessionNotFoundError,
)
from fabric.core.ids import AgentId, HostName, OwnerId, Principal, SessionId
from fabric.core.model import Caller, EventKind, SandboxMode, SessionInfo
from fabric.registry.instructions import (
    AbortOpen,
    Announce,
    CloseSession,
    Drop,
    Fence,
    Instruction,
    Kind,
)
from fabric.registry.owners import Owner
from fabric.registry.session import LAST_RETRY_S, Session, SessionState
from fabric.registry.shelf import Shelf
from fabric.registry.tombstones import Tombstone


class Table(Shelf):
    """Who owns what, and where it is."""

    # Owners

    def acquire(
        self,
        principal: Principal,
        agent: AgentId,
        mode: SandboxMode | None,
        lease_s: float | None,
        fresh_id: OwnerId,
        now: float,
    ) -> tuple[Owner, list[Instruction]]:
        """Make an owner or take it over; a take-over fences its sessions and aborts its opens."""
        owner, taken_over, out = self.owners.acquire(principal, agent, mode, lease_s, fresh_id, now)
        if taken_over:
            for session in self._of(owner):
                if session.is_visible:
                    out += self.fence(session, owner)
                elif session.state is SessionState.OPENING:
                    out += self._abort(session, f"it was re-acquired (epoch {owner.epoch})")
        return owner, out

    def dispose(self, owner_id: OwnerId, why: str, now: float) -> list[Instruction]:
        """End an owner: abort its opens, close its sessions, forget it with the last of them.

        Repeated for an owner that is being disposed of, it tries what failed again.
        """
        owner = self.owners.find(owner_id)
        if owner is None:
            return []
        out: list[Instruction] = []
        if owner.is_live:
            out += self.owners.begin_disposal(owner, why)
            out.append(Announce(owner_id, EventKind.OWNER_DISPOSED, detail=why))
        for session in self._of(owner):
            if session.state is SessionState.OPENING:
                out += self._abort(session, why)
            elif session.state is not SessionState.ABORTING:
                out += self._begin_close(session, f"owner disposed: {why}")
        return out + self._bury_if_done(owner, now)

    # Opening

    def reserve(
        self, caller: Caller, session_id: SessionId, kind: str, name: str | None
    ) -> Session:
        """Reserve a name and a place for an open; nothing is written yet.

        Raises: OwnerNotLiveError, NameTakenError, CapacityReachedError.
        """
        owner = self.owners.authorise(caller)
        holder = owner.names.get(name) if name is not None else None
        if holder is not None:
            pending = self.sessions[holder].is_pending
            state = "is already being created" if pending else "already exists"
            raise NameTakenError(f"a session named {name!r} {state} for this owner", name=name)
        self._check_limits(owner)
        if session_id in self.sessions or self.tombstones.get(session_id):
            raise InternalError(f"session id {session_id} was used before")
        session = Session(session_id, owner.owner_id, owner.epoch, kind, name, owner.mode)
        session.fenced_epoch = owner.epoch
        self._insert(session, owner)
        return session

    def withdraw(self, session_id: SessionId, now: float) -> list[Instruction]:
        """Undo a reservation that no node has heard of."""
        session = self.sessions.get(session_id)
        if session is None:
            return []
        owner = self._take_out(session)
        return [Drop(Kind.SESSION, session_id), *self._bury_if_done(owner, now)]

    def assign(self, session_id: SessionId, host: HostName) -> list[Instruction]:
        """Say which node an open goes to."""
        session = self.sessions[session_id]
        self._place(session, host)
        return [session.row()]

    def publish(self, session_id: SessionId, info: SessionInfo) -> list[Instruction]:
        """Make an opened session visible.

        Raises: OwnerNotLiveError when the owner ended or was taken over meanwhile.
        """
        session = self.sessions.get(session_id)
        if session is None:
            raise SessionLostError(f"session {session_id} was lost while it opened")
        self.owners.authorise(Caller(session.owner_id, session.epoch))
        if session.state is not SessionState.OPENING:
            raise CancelledCallError(f"the open of {session_id} is being rolled back")
        self._order += 1
        session.state = SessionState.PUBLISHED
        session.order = self._order
        session.info = info
        self._touch(session)
        return [session.row()]

    def abort(self, session_id: SessionId) -> list[Instruction]:
        """Note that an open is being rolled back for its caller's sake."""
        session = self.sessions.get(session_id)
        if session is None or session.state is not SessionState.OPENING:
            return []
        session.state = SessionState.ABORTING
        return []

    def rolled_back(self, session_id: SessionId, now: float) -> list[Instruction]:
        """Forget an open of which nothing is left."""
        session = self.sessions.get(session_id)
        if session is None or session.is_visible:
            return []
        return self._remove(session, "it was never published", False, now)

    def rollback_failed(self, session_id: SessionId, fault: str, now: float) -> list[Instruction]:
        """Keep an open that left something behind, as activity of its owner."""
        session = self.sessions.get(session_id)
        if session is None or session.is_visible:
            return []
        session.state = SessionState.UNCLEAN
        self._release_name(session)
        session.failed(fault, now)
        self._touch(session)
        return [session.row()]

    # Using and closing

    def find(self, caller: Caller, session_id: SessionId) -> Session:
        """Return the caller's session.

        Raises: OwnerNotLiveError, SessionNotFoundError, SessionLostError,
        ForeignSessionError.
        """
        owner = self.owners.authorise(caller)
        stone = self.tombstones.get(session_id)
        known: Session | Tombstone | None = self.sessions.get(session_id)
        if isinstance(known, Session) and not known.is_visible:
            known = None
        elif known is None and stone is not None and stone.lost:
            known = stone
        if known is not None and known.owner_id != owner.owner_id:
            raise ForeignSessionError(
                f"session {session_id} belongs to another owner", session_id=session_id
            )
        return self.visible(session_id)

    def visible(self, session_id: SessionId) -> Session:
        """Return a published session. Raises: SessionNotFoundError, SessionLostError."""
        session = self.sessions.get(session_id)
        if session is not None and session.is_visible:
            return session
        stone = self.tombstones.get(session_id)
        if stone is not None and stone.lost:
            raise SessionLostError(
                f"session {session_id} was lost: {stone.why}", session_id=session_id
            )
        raise SessionNotFoundError(f"unknown session {session_id}", session_id=session_id)

    def listed(self, caller: Caller) -> tuple[Session, ...]:
        """List the caller's published sessions in order of publication."""
        owner = self.owners.authorise(caller)
        return tuple(sorted(self._visible_of(owner), key=lambda session: session.order))

    def begin_close(
        self, caller: Caller, session_id: SessionId, reason: str
    ) -> tuple[bool, list[Instruction]]:
        """Start a close, or find one under way (False). Raises: as ``find``."""
        session = self.find(caller, session_id)
        first = session.state is SessionState.PUBLISHED
        return first, self._begin_close(session, reason)

    def retract(self, session_id: SessionId, reason: str) -> list[Instruction]:
        """Close a session whose opener went away at the moment of its publication."""
        session = self.sessions.get(session_id)
        if session is None or session.state is not SessionState.PUBLISHED:
            return []
        return self._begin_close(session, reason)

    def closed(self, session_id: SessionId, now: float) -> list[Instruction]:
        """Forget a session whose end was verified."""
        session = self.sessions.get(session_id)
        return [] if session is None else self._remove(session, "it was closed", False, now)

    def close_failed(self, session_id: SessionId, fault: str, now: float) -> list[Instruction]:
        """Keep a session whose close failed; it may be tried again."""
        session = self.sessions.get(session_id)
        if session is None or session.is_pending:
            return []
        if session.state is SessionState.CLOSING:
            session.state = SessionState.PUBLISHED
        session.failed(fault, now)
        self._touch(session)
        return [session.row()]

    def lost(self, session_id: SessionId, why: str, now: float) -> list[Instruction]:
        """Give a session up that cannot be reached any more."""
        session = self.sessions.get(session_id)
        if session is None or session.is_pending:
            return []
        out: list[Instruction] = []
        if session.is_visible:
            out.append(Announce(session.owner_id, EventKind.SESSION_LOST, session_id, detail=why))
        return out + self._remove(session, why, True, now)

    def fence(self, session: Session, owner: Owner) -> list[Instruction]:
        """Have a session told the owner's epoch, if it may not know it."""
        if session.host is None or session.fenced_epoch >= owner.epoch:
            return []
        return [Fence(session.host, session.session_id, owner.epoch)]

    def fenced(self, session_id: SessionId, epoch: int) -> list[Instruction]:
        """Note that a session's worker knows an epoch."""
        session = self.sessions.get(session_id)
        if session is None or session.fenced_epoch >= epoch:
            return []
        session.fenced_epoch = epoch
        return [session.row()]

    def tick(self, now: float) -> list[Instruction]:
        """End leases, give unreachable sessions up, try failed cleanups again."""
        out: list[Instruction] = []
        for owner in self.owners.expired(now):
            out += self.dispose(owner.owner_id, "its lease ended", now)
        for owner in self.owners.to_warn(now):
            left = f"{max(0.0, owner.deadline - now):.1f} s left"
            out.append(Announce(owner.owner_id, EventKind.LEASE_EXPIRING, detail=left))
        limit = self._settings.lost_timeout_s
        for session in list(self.sessions.values()):
            if session.away_since is not None and now - session.away_since >= limit:
                why = f"its node {session.host} did not answer for {limit:g} s"
                out += self.lost(session.session_id, why, now)
            elif self._wants_retry(session, now):
                session.retry_at = now + LAST_RETRY_S
                out += self._begin_close(session, "retry of a failed cleanup")
        return out + self.tombstones.tick(now) + self.owners.tombstones.tick(now)

    # Shared steps

    def restore(self, session: Session) -> list[Instruction]:
        """Put back a row of the journal. An open or a rollback in flight then is unclean now."""
        owner = self.owners.find(session.owner_id)
        if owner is None:
            return [Drop(Kind.SESSION, session.session_id)]
        if session.is_pending:
            session.state = SessionState.UNCLEAN
            session.fault = "the registry stopped during the open"
        host, session.host = session.host, None
        self._insert(session, owner)
        if session.state is SessionState.UNCLEAN:
            self._release_name(session)
        self._place(session, host)
        self._order = max(self._order, session.order)
        return []

    def unfinished(self, now: float) -> list[Instruction]:
        """Go on, after a restart, with the closes that were in flight; ``tick`` does the rest."""
        out: list[Instruction] = [
            CloseSession(session.session_id, "resumed after a restart of the registry")
            for session in self.sessions.values()
            if session.state is SessionState.CLOSING
        ]
        for owner in self.owners:
            out += self._bury_if_done(owner, now)
        return out

    def _check_limits(self, owner: Owner) -> None:
        limit = self._settings.max_sessions_per_owner
        if len(owner.sessions) >= limit:
            raise CapacityReachedError(
                f"this owner has {len(owner.sessions)} of {limit} sessions; close one first",
                sessions=len(owner.sessions),
                limit=limit,
            )
        limit = self._settings.max_pending_opens_per_owner
        pending = sum(session.is_pending for session in self._of(owner))
        if pending >= limit:
            raise CapacityReachedError(
                f"this owner has {pending} of {limit} opens in flight; wait for one to settle",
                pending=pending,
                limit=limit,
            )
        self._check_quota(owner)

    def _check_quota(self, owner: Owner) -> None:
        """Hold a principal's owners together to what was laid down for it."""
        policy = self.owners.policy(owner.principal)
        if policy.max_sessions is None and policy.max_opens is None:
            return
        mine = [item for other in self.owners.of_principal(owner.principal) for item in
                self._of(other)]  # fmt: skip
        pending = sum(session.is_pending for session in mine)
        for limit, count, noun in (
            (policy.max_sessions, len(mine), "sessions"),
            (policy.max_opens, pending, "opens in flight"),
        ):
            if limit is not None and count >= limit:
                raise CapacityReachedError(
                    f"principal {owner.principal} has {count} of {limit} {noun}, all its owners"
                    " together",
                    count=count,
                    limit=limit,
                )

    def _wants_retry(self, session: Session, now: float) -> bool:
        if session.retry_at > now:
            return False
        if session.state is SessionState.UNCLEAN:
            return True
        owner = self.owners.find(session.owner_id)
        return session.state is SessionState.PUBLISHED and owner is not None and not owner.is_live

    def _abort(self, session: Session, why: str) -> list[Instruction]:
        session.state = SessionState.ABORTING
        return [AbortOpen(session.session_id, why)]

    def _begin_close(self, session: Session, reason: str) -> list[Instruction]:
        close = CloseSession(session.session_id, reason)
        if session.state is not SessionState.PUBLISHED:
            return [close]
        session.state = SessionState.CLOSING
        self._touch(session)
        return [session.row(), close]
