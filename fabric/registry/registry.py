"""The registry: owners, sessions, placement, tasks and events, one method a use case.

A plain class for one event loop; ``fabric.actors`` makes a Ray actor of it. It decides in
the pure tables, writes one transaction, and only then asks the nodes. It is not on the
way of any byte: sends and reads go from the gateways to the sessions' workers.
"""

import asyncio
import logging
from dataclasses import replace

from fabric.core.census import Census
from fabric.core.clock import Clock, SystemClock
from fabric.core.errors import (
    DeadlineError,
    DrainingError,
    InternalError,
    NodeNotFoundError,
    RegistryUnavailableError,
    SessionLostError,
    SessionNotFoundError,
)
from fabric.core.ids import (
    AgentId,
    HostName,
    Principal,
    RequestId,
    SessionId,
    new_owner_id,
    parse_label,
    parse_request_id,
)
from fabric.core.model import (
    Caller,
    CloseResult,
    GatewayKeys,
    Location,
    NodeState,
    OpenRequest,
    OpenResult,
    OwnerGrant,
    ReleaseReceipt,
    SandboxMode,
    SessionInfo,
)
from fabric.core.repeat import digest_of
from fabric.core.settings import RegistrySettings, SharedSettings, ShellSettings, TaskSettings
from fabric.registry.books import Books, Effect
from fabric.registry.calls import Ticket
from fabric.registry.closing import Closings
from fabric.registry.counting import census_of
from fabric.registry.ending import Endings
from fabric.registry.hands import Hands, cancel
from fabric.registry.instructions import Change
from fabric.registry.journal import Journal
from fabric.registry.opening import Openings
from fabric.registry.owners import Owner
from fabric.registry.ports import NodesPort
from fabric.registry.recovery import gateway_keys, keys_row, restore, with_fresh_token_key
from fabric.registry.session import Session
from fabric.registry.telling import Telling
from fabric.registry.view import View
from fabric.registry.waiting import every, within

_log = logging.getLogger(__name__)
# What a node that did not answer before gets to answer; its callers repeat by themselves.
SILENT_S = 0.5


class Registry(Telling):
    """Who owns which session, and where it runs. Every method raises typed errors only.

    Until ``start`` has compared the journal with the nodes, and after ``stop``, every
    call raises RegistryUnavailableError.
    """

    def __init__(
        self,
        *,
        settings: RegistrySettings,
        tasks: TaskSettings,
        nodes: NodesPort,
        journal: Journal,
        clock: Clock | None = None,
        shell: ShellSettings | None = None,
        shared: SharedSettings | None = None,
        here: HostName | None = None,
    ) -> None:
        self._settings = settings
        self._nodes = nodes
        self._clock = clock if clock is not None else SystemClock()
        super().__init__(Books(settings, tasks, journal, self._clock), tasks)
        self._view = View(self._books, nodes, settings, here)
        self._closings = Closings(self._books, nodes, settings)
        self._openings = Openings(
            self._books,
            nodes,
            self._closings,
            self._view,
            settings,
            shell if shell is not None else ShellSettings(),
            shared if shared is not None else SharedSettings(),
        )
        self._hands = Hands(self._books, nodes, settings, self._closings, self._openings)
        self._endings = Endings(self._books, self._closings, self._hands)
        self._keys = GatewayKeys((), "")
        self._loops: list[asyncio.Task[None]] = []

    # Life

    async def start(self, *, watch: bool = True) -> None:
        """Load the journal and compare it with the nodes; then answer calls.

        ``watch`` False leaves ``tick`` and ``poll`` to the caller. Raises: InternalError.
        """
        rows = self._books.journal.load()
        begun = restore(self._books, rows)
        self._keys = gateway_keys(self._books, rows)
        effects: list[Effect] = []
        try:
            effects = await self._view.poll()
        except RegistryUnavailableError as error:
            _log.warning("started without nodes", extra={"reason": error.message})
        self._is_ready = True
        self._hands.perform(effects)
        self._endings.resume(begun)
        if watch:
            self._loops = [
                every(self._settings.sweep_interval_s, self.tick),
                every(self._settings.node_poll_interval_s, self.poll),
            ]
        _log.info("registry started", extra={"sessions": len(self._books.table.sessions)})

    async def stop(self) -> None:
        """Stop answering: opens are rolled back, sessions and their owners stay as they are."""
        if not self._is_ready:
            return
        self._is_ready = False
        self._view.stop()
        await cancel(self._loops)
        await self._books.calls.stop()
        await self._closings.stop()
        await self._hands.stop()
        self._books.journal.close()

    async def dispose_all(self, reason: str) -> ReleaseReceipt:
        """End every owner and await it; opens are refused with DrainingError from now on."""
        self._require_ready()
        self._is_draining = True
        owners = [owner.owner_id for owner in self._books.table.owners]
        receipts = await asyncio.gather(*(self._hands.dispose(owner, reason) for owner in owners))
        return ReleaseReceipt(
            tuple(key for receipt in receipts for key in receipt.closed),
            tuple(key for receipt in receipts for key in receipt.failed),
        )

    async def tick(self) -> None:
        """End leases, give up what is lost, retry cleanups, drop what is kept too long."""
        books, now = self._books, self._clock.monotonic()
        rows: list[Change] = [*books.tasks.tick(now), *books.calls.tick()]
        self._hands.perform(books.commit([*books.table.tick(now), *rows]))

    async def poll(self) -> None:
        """Ask the nodes what they run. Raises: RegistryUnavailableError."""
        self._hands.perform(await self._view.poll())
        await self._view.give_word()

    # Gateways and nodes

    async def join(self, host: HostName, address: str) -> GatewayKeys:
        """Announce a gateway and get the fabric's keys, the current token key first."""
        self._require_ready()
        self._view.gateways[host] = address
        return self._keys

    async def leave(self, host: HostName, address: str) -> None:
        """Withdraw a gateway, unless another has taken its place."""
        if self._view.gateways.get(host) == address:
            del self._view.gateways[host]

    async def rotate_token_key(self) -> GatewayKeys:
        """Sign with a new key from now on; tokens of the one before it stay good."""
        self._require_ready()
        keys = with_fresh_token_key(self._keys)
        self._books.write([keys_row(keys)], must=True)
        self._keys = keys
        return keys

    async def nodes(self) -> tuple[NodeState, ...]:
        """List the nodes with their capacity, as fresh as they answer."""
        self._require_ready()
        await self._view.refresh()
        return self._view.states()

    async def census(self) -> Census:
        """Count owners, sessions and tasks."""
        self._require_ready()
        return census_of(self._books)

    # Owners

    async def acquire(
        self,
        principal: Principal,
        agent: AgentId,
        mode: SandboxMode | None,
        lease_s: float | None,
        request_id: RequestId,
    ) -> OwnerGrant:
        """Make or take over an owner; a take-over raises its epoch and fences its sessions.

        Raises: InvalidRequestError, PermissionDeniedError, SandboxModeLockedError,
        LimitReachedError, DrainingError.
        """
        self._require_ready()
        parse_label(principal, "principal")
        parse_label(agent, "agent")
        digest = digest_of("acquire", mode and mode.value, lease_s)
        ticket = Ticket(f"{principal} {agent}", parse_request_id(request_id), digest, "acquire")

        async def work() -> OwnerGrant:
            self._require_open()
            owner, instructions = self._books.table.acquire(
                principal, agent, mode, lease_s, new_owner_id(), self._clock.monotonic()
            )
            grant = self._grant(owner)
            row = self._books.calls.settled(ticket, grant)
            effects = self._books.commit([*instructions, row], must=True)
            self._books.wake(owner.owner_id)  # readers of the older epoch learn of it
            await self._hands.fence(effects)
            return grant

        return await self._books.calls.run(ticket, work)

    async def renew(self, caller: Caller, lease_s: float | None) -> OwnerGrant:
        """Extend the lease. Raises: OwnerNotLiveError, InvalidRequestError."""
        self._require_ready()
        table = self._books.table
        self._books.commit(table.owners.renew(caller, lease_s, self._clock.monotonic()))
        return self._grant(table.owners.authorise(caller))

    async def set_mode(
        self, caller: Caller, mode: SandboxMode, request_id: RequestId
    ) -> OwnerGrant:
        """Change the owner's mode.

        Raises: OwnerNotLiveError, PermissionDeniedError, SandboxModeLockedError.
        """
        self._authorise(caller)
        ticket = self._ticket(caller, request_id, "set_mode", mode.value)

        async def work() -> OwnerGrant:
            table = self._books.table
            instructions = table.owners.set_mode(caller, mode)
            grant = self._grant(table.owners.authorise(caller))
            self._books.commit([*instructions, self._books.calls.settled(ticket, grant)])
            return grant

        return await self._books.calls.run(ticket, work)

    async def release(self, caller: Caller, request_id: RequestId) -> ReleaseReceipt:
        """Dispose of the owner and await the end of its sessions.

        A release of an owner that is being disposed of tries again what failed.
        Raises: OwnerNotLiveError.
        """
        self._require_ready()
        ticket = self._ticket(caller, request_id, "release", epoch=caller.epoch)
        return await self._books.calls.run(ticket, lambda: self._endings.release(ticket, caller))

    # Sessions

    async def open(self, caller: Caller, request: OpenRequest) -> OpenResult:
        """Open and publish a session; cancelling the call rolls it back.

        Raises: OwnerNotLiveError, InvalidRequestError, UnsupportedError, NameTakenError,
        CapacityReachedError, NodeNotFoundError, SandboxUnavailableError, DrainingError,
        StartupTimeoutError, SpawnFailedError, CleanupIncompleteError.
        """
        self._require_open()
        self._books.table.owners.authorise(caller)
        self._openings.check(request)
        ticket = self._ticket(
            caller, request.request_id, "open", request, command=request.command is not None
        )

        async def undo(result: OpenResult) -> None:
            table = self._books.table
            effects = self._books.commit(table.retract(result.info.session_id, "open cancelled"))
            closes = self._hands.perform(effects)
            if closes:
                await asyncio.wait(closes)

        return await self._books.calls.run(
            ticket,
            lambda: self._openings.run(ticket, caller, request),
            revocable=True,
            undo=undo,
        )

    async def close(
        self, caller: Caller, session_id: SessionId, request_id: RequestId
    ) -> CloseResult:
        """Close a session and await the end of its tree.

        Raises: OwnerNotLiveError, SessionNotFoundError, SessionLostError,
        ForeignSessionError, CleanupIncompleteError (the session stays; close it again).
        """
        self._authorise(caller)
        ticket = self._ticket(caller, request_id, "close", session_id, session_id=session_id)
        return await self._books.calls.run(
            ticket, lambda: self._endings.close(ticket, caller, session_id)
        )

    async def list(self, caller: Caller) -> tuple[SessionInfo, ...]:
        """List the owner's published sessions in order of publication."""
        self._authorise(caller)
        hosts = {item.host for item in self._books.table.listed(caller) if item.host is not None}
        alive = {node.host for node in self._view.states() if node.alive}
        self._hands.perform(await self._view.ask(sorted(hosts & alive)))
        return tuple(_info(session) for session in self._books.table.listed(caller))

    async def locate(self, session_id: SessionId) -> Location:
        """Say where a session is. Raises: SessionNotFoundError, SessionLostError."""
        self._require_ready()
        session = self._books.table.visible(session_id)
        host = session.host
        if host is None:
            raise InternalError(f"session {session_id} has no node")
        limit = self._settings.node_call_timeout_s
        if self._view.is_silent(host):
            limit = min(limit, SILENT_S)
        try:
            return await within(limit, f"node {host}", self._nodes.locate(host, session_id))
        except SessionNotFoundError as error:
            self._books.table.visible(session_id)
            raise SessionLostError(
                f"session {session_id} is not on node {host} any more", session_id=session_id
            ) from error
        except (NodeNotFoundError, RegistryUnavailableError, DeadlineError) as error:
            raise RegistryUnavailableError(
                f"node {host} of session {session_id} does not answer", session_id=session_id
            ) from error

    # Shared

    def _grant(self, owner: Owner) -> OwnerGrant:
        left = owner.deadline - self._clock.monotonic()
        return OwnerGrant(
            owner.owner_id,
            owner.epoch,
            owner.principal,
            owner.agent,
            owner.mode,
            owner.lease_s,
            self._clock.wall() + left,
        )

    def _ticket(
        self, caller: Caller, request_id: RequestId, kind: str, *content: object, **args: object
    ) -> Ticket:
        digest = digest_of(kind, *content)
        return Ticket(caller.owner_id, parse_request_id(request_id), digest, kind, args)

    def _require_open(self) -> None:
        self._require_ready()
        if self._is_draining:
            raise DrainingError("the fabric is shutting down and takes no new work")


def _info(session: Session) -> SessionInfo:
    if session.info is None:
        raise InternalError(f"session {session.session_id} has no description")
    return replace(session.info, host=session.host, name=session.name)
