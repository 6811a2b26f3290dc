"""The asynchronous client: an owner, its sessions and its tasks."""

import asyncio
import contextlib
import ipaddress
import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any, Self

from fabric.client import tooling
from fabric.client.calls import Calls
from fabric.client.events import Events
from fabric.client.link import Link, Tls
from fabric.client.ptys import PtyFacade
from fabric.client.session import Session, Task
from fabric.client.shared import SharedTerminal, view_ticket
from fabric.client.tooling import ToolAnswer, ToolInfo
from fabric.core.errors import (
    FabricError,
    InvalidRequestError,
    OwnerNotLiveError,
    UnauthenticatedError,
    UnsupportedError,
)
from fabric.core.ids import (
    AgentId,
    HostName,
    RequestId,
    SessionId,
    new_request_id,
    parse_session_id,
)
from fabric.core.model import (
    NodeState,
    OpenRequest,
    OwnerGrant,
    ReleaseReceipt,
    SandboxMode,
    SessionInfo,
    TaskRecord,
)
from fabric.core.shared import ViewTicket
from fabric.wire.metadata import caller_headers
from fabric.wire.methods import API_MAJOR
from fabric.wire.records import AcquireRequest
from fabric.wire.server import ServerInfo

DEFAULT_ADDRESS = "127.0.0.1:7443"
CALL_TIMEOUT_S = 30.0
OPEN_WAIT_S = 60.0
RELEASE_WAIT_S = 120.0
RENEWALS_PER_LEASE = 3
_log = logging.getLogger(__name__)


def _own_version() -> str:
    try:
        return version("pty-fabric")
    except PackageNotFoundError:  # a checkout on the path, not installed
        return "0"


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost" or address.startswith("unix:"):
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def _pairs(env: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    if env is not None and not isinstance(env, Mapping):
        raise InvalidRequestError("env must be a mapping of names to values")
    return tuple((env or {}).items())


class FabricClient:
    """An owner and what it holds, for as long as the ``async with`` block runs.

        async with FabricClient.connect("127.0.0.1:7443", agent="me") as fabric:
            shell = await fabric.open("shell")
            print((await shell.send("echo hi")).viewport)

    Entering acquires the owner, a background task keeps its lease, leaving releases it
    with everything it holds unless ``keep`` is set.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        token: str | None,
        agent: str | None,
        mode: SandboxMode | str | None,
        lease_s: float | None,
        keep: bool,
        owner_token: str | None,
        tls: Tls | None,
        insecure: bool,
        call_timeout_s: float,
    ) -> None:
        if token and tls is None and not insecure:
            for address in addresses:
                if not _is_loopback(address):
                    raise InvalidRequestError(
                        f"refusing to send a token to {address} in clear; "
                        "give tls, or insecure=True on a network you trust"
                    )
        self._addresses = tuple(addresses)
        self._token = token
        self._agent = AgentId(agent or f"agent-{secrets.token_hex(8)}")
        self._mode = _as_mode(mode)
        self._lease_s = lease_s
        self.keep = keep
        self._given_owner_token = owner_token
        self._owner_token = owner_token
        self._tls = tls
        self._call_timeout_s = call_timeout_s
        self._calls: Calls | None = None
        self._server: ServerInfo | None = None
        self._owner: OwnerGrant | None = None
        self._renewing: asyncio.Task[None] | None = None
        self.pty = PtyFacade(self)

    @classmethod
    def connect(
        cls,
        address: str | Sequence[str] = DEFAULT_ADDRESS,
        *,
        token: str | None = None,
        agent: str | None = None,
        mode: SandboxMode | str | None = None,
        lease_s: float | None = None,
        keep: bool = False,
        owner_token: str | None = None,
        tls: Tls | None = None,
        insecure: bool = False,
        call_timeout_s: float = CALL_TIMEOUT_S,
    ) -> Self:
        """Make a client of one or several gateways of a fabric; ``async with`` connects it.

        ``agent`` names this caller among those of its principal (None: a random name);
        acquiring the same name again takes its sessions over. ``owner_token`` uses an owner
        acquired earlier, and then ``keep`` is implied. Times are in seconds.

        Raises: InvalidRequestError.
        """
        addresses = (address,) if isinstance(address, str) else tuple(address)
        return cls(
            addresses,
            token=token,
            agent=agent,
            mode=mode,
            lease_s=lease_s,
            keep=keep or owner_token is not None,
            owner_token=owner_token,
            tls=tls,
            insecure=insecure,
            call_timeout_s=call_timeout_s,
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Connect, check the versions and acquire the owner.

        Raises: GatewayUnavailableError, UnauthenticatedError, UnsupportedError.
        """
        link = Link(self._addresses, self._tls)
        self._calls = Calls(link, (), self._call_timeout_s)
        try:
            self._take_token(self._owner_token)
            self._server = await self._calls.server_info(_own_version())
            if self._server.api_major != API_MAJOR:
                raise UnsupportedError(
                    f"the server {self._server.version} speaks version {self._server.api_major} "
                    f"of the protocol, this client version {API_MAJOR}; update the older one",
                    server_version=self._server.version,
                )
            if self._given_owner_token is None:
                request = AcquireRequest(new_request_id(), self._agent, self._mode, self._lease_s)
                self._owner, token = await self._calls.acquire(request)
            else:
                self._owner, token = await self._calls.renew(self._lease_s)
            self._take_token(token)
        except BaseException:
            await link.close()
            self._calls = None
            raise
        self._renewing = asyncio.create_task(self._keep_alive(), name="fabric-client-lease")

    async def stop(self) -> None:
        """Release the owner unless ``keep`` is set, and disconnect. May be repeated."""
        calls = self._calls
        if calls is None:
            return
        try:
            await self._end_renewing()
            if not self.keep:
                await self.pty.dispose()
                with contextlib.suppress(OwnerNotLiveError):
                    await calls.release(new_request_id(), RELEASE_WAIT_S)
        finally:
            self._calls = None
            await calls.link.close()

    async def _end_renewing(self) -> None:
        renewing, self._renewing = self._renewing, None
        if renewing is not None:
            renewing.cancel()
            await asyncio.wait({renewing})

    def _take_token(self, token: str | None) -> None:
        self._owner_token = token
        self.calls.headers = caller_headers(self._token, token)

    async def _keep_alive(self) -> None:
        while True:
            lease_s = self.owner.lease_s
            await asyncio.sleep(lease_s / RENEWALS_PER_LEASE)
            try:
                await self.renew()
            except (OwnerNotLiveError, UnauthenticatedError) as error:
                _log.warning("lease not renewed", extra={"reason": error.reason})
                return
            except FabricError as error:
                _log.warning("lease not renewed yet", extra={"reason": error.reason})
                if time.time() >= self.owner.expires_at:
                    return

    # -- what it is -----------------------------------------------------------------------

    @property
    def calls(self) -> Calls:
        """The verbs below this client. Raises: InvalidRequestError unless it is connected."""
        if self._calls is None:
            raise InvalidRequestError("the client is not connected; use it in `async with`")
        return self._calls

    @property
    def addresses(self) -> tuple[str, ...]:
        """The gateways this client was given."""
        return self._addresses

    @property
    def server(self) -> ServerInfo:
        """The server as it introduced itself."""
        if self._server is None:
            raise InvalidRequestError("the client was never connected; use it in `async with`")
        return self._server

    @property
    def owner(self) -> OwnerGrant:
        """The owner, as of its last renewal."""
        if self._owner is None:
            raise InvalidRequestError("the client was never connected; use it in `async with`")
        return self._owner

    @property
    def owner_token(self) -> str:
        """The owner's present token: a secret that ``connect(owner_token=...)`` takes."""
        return self._owner_token or ""

    @property
    def bearer(self) -> str | None:
        """The token that names the principal; None where nobody needs one."""
        return self._token

    # -- verbs ----------------------------------------------------------------------------

    async def open(
        self,
        type: str = "shell",  # noqa: A002  (the argument's name everywhere)
        *,
        name: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        os: str | None = None,
        host: str | None = None,
        rows: int | None = None,
        cols: int | None = None,
        term: str | None = None,
        command: str | None = None,
        timeout_s: float | None = None,
        request_id: RequestId | None = None,
    ) -> Session:
        """Open a session and return when it first wants input; cancelling rolls it back.

        Raises: NameTakenError, CapacityReachedError, SpawnFailedError, StartupTimeoutError.
        """
        request = OpenRequest(
            request_id=request_id or new_request_id(),
            type=type,
            name=name,
            cwd=cwd,
            env=_pairs(env),
            os=os,
            host=None if host is None else HostName(host),
            rows=rows,
            cols=cols,
            term=term,
            command=command,
            timeout_s=timeout_s,
        )
        result = await self.calls.open(request, OPEN_WAIT_S if timeout_s is None else timeout_s)
        return Session(self, result.info.session_id, result)

    def session(self, session_id: str) -> Session:
        """Return a session opened earlier. Raises: InvalidRequestError for a malformed id."""
        return Session(self, SessionId(parse_session_id(session_id)))

    @property
    def shared(self) -> SharedTerminal:
        """The terminal that the owner's model shares with a person."""
        return SharedTerminal(lambda: self.calls)

    async def list(self) -> tuple[SessionInfo, ...]:
        """List the owner's sessions in the order in which they were opened."""
        return await self.calls.list()

    async def tasks(self) -> tuple[TaskRecord, ...]:
        """List the owner's tasks."""
        return await self.calls.list_tasks()

    def task(self, record: TaskRecord) -> Task:
        """Return a task from its record, to be read from the beginning.

        Raises: InvalidRequestError when it is none.
        """
        if not isinstance(record, TaskRecord):
            raise InvalidRequestError("a task is made from its record, as tasks() lists them")
        return Task(self, record)

    def events(self, cursor: int | None = None) -> Events:
        """Follow the owner's events after number ``cursor`` (None: after the acknowledged)."""
        return Events(lambda: self.calls, cursor)

    async def view_ticket(
        self,
        session_id: SessionId | str | None = None,
        *,
        overview: bool = False,
        readonly: bool = False,
    ) -> ViewTicket:
        """Make a link for a browser: to the shared terminal, a session, or the list of them.

        Its ticket counts once, within seconds, at the gateway that this client talks to.
        Only a view of the shared terminal without ``readonly`` may act.

        Raises: SessionNotFoundError, UnsupportedError (no web server), LimitReachedError.
        """
        known = None if session_id is None else parse_session_id(str(session_id))
        return await view_ticket(self.calls, known, overview=overview, readonly=readonly)

    async def nodes(self) -> tuple[NodeState, ...]:
        """List the nodes of the fabric."""
        return await self.calls.nodes()

    async def list_tools(self, *surfaces: str) -> tuple[tuple[ToolInfo, ...], str]:
        """List the tools for a model, of some families or all, and a text that guides it."""
        return await tooling.list_tools(self.calls, surfaces)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        request_id: RequestId | None = None,
        wait_s: float | None = None,
    ) -> ToolAnswer:
        """Carry a model's call through; what goes wrong inside it is an answer too."""
        limit = self.server.max_wait_s if wait_s is None else wait_s
        return await tooling.call_tool(
            self.calls, name, arguments or {}, request_id or new_request_id(), limit
        )

    async def set_mode(
        self, mode: SandboxMode | str, *, request_id: RequestId | None = None
    ) -> OwnerGrant:
        """Change the mode of sessions to be opened. Raises: SandboxModeLockedError."""
        wanted = _as_mode(mode)
        if wanted is None:
            raise InvalidRequestError("mode must be stated", field="mode")
        self._owner = await self.calls.set_mode(wanted, request_id or new_request_id())
        return self._owner

    async def renew(self) -> OwnerGrant:
        """Extend the lease now. Raises: OwnerNotLiveError."""
        self._owner, token = await self.calls.renew(self._lease_s)
        self._take_token(token)
        return self._owner

    async def release(self, *, request_id: RequestId | None = None) -> ReleaseReceipt:
        """Dispose of the owner now: close its sessions and wait for their end."""
        await self._end_renewing()
        receipt = await self.calls.release(request_id or new_request_id(), RELEASE_WAIT_S)
        self.keep = True  # nothing is left to release
        return receipt


def _as_mode(mode: SandboxMode | str | None) -> SandboxMode | None:
    if mode is None:
        return None
    try:
        return SandboxMode(mode)
    except ValueError as error:
        names = ", ".join(SandboxMode)
        raise InvalidRequestError(f"mode must be one of {names}", field="mode") from error
