"""The verbs of shared terminals, here or at the gateway of the node where they run."""

from typing import Any, Protocol

from fabric.core.ids import RequestId, SessionId
from fabric.core.model import Caller, SignalName
from fabric.core.plain import from_plain, to_plain
from fabric.core.shared import SharedPage, SharedResult, SharedSend

READ_S = 10.0


class SharedPeer(Protocol):
    """Another gateway, which serves the terminals of its node."""

    async def shared_send(
        self, caller: Caller, session_id: SessionId, request: SharedSend
    ) -> SharedResult:
        """Queue a model's send."""
        ...

    async def shared_signal(
        self, caller: Caller, session_id: SessionId, name: SignalName, request_id: RequestId
    ) -> SharedResult:
        """Queue a signal."""
        ...

    async def shared_reset(
        self, caller: Caller, session_id: SessionId, request_id: RequestId
    ) -> SharedResult:
        """Queue a reset."""
        ...

    async def shared_read(
        self, caller: Caller, session_id: SessionId, offset: int, count: int
    ) -> SharedPage:
        """Read the history."""
        ...


class SharedVerbs:
    """What ``Sessions`` knows of shared terminals beside its other verbs.

    An operation whose worker died under it raises OutcomeUnknownError; under its request id
    it is not run again by the same worker, and the next worker recovers the terminal first.
    """

    async def _peer(self, session_id: SessionId) -> Any:
        raise NotImplementedError

    async def _ask(
        self,
        caller: Caller,
        session_id: SessionId,
        method: str,
        args: dict[str, Any],
        timeout_s: float | None,
        *,
        repeat: bool = True,
    ) -> Any:
        raise NotImplementedError

    async def shared_send(
        self, caller: Caller, session_id: SessionId, request: SharedSend
    ) -> SharedResult:
        """Queue a model's send and wait for its end; cancelling the call gives it up."""
        peer: SharedPeer | None = await self._peer(session_id)
        if peer is not None:
            return await peer.shared_send(caller, session_id, request)
        args = {"request": to_plain(request)}
        return await self._queue(caller, session_id, "shared_send", args)

    async def shared_signal(
        self, caller: Caller, session_id: SessionId, name: SignalName, request_id: RequestId
    ) -> SharedResult:
        """Queue a signal and wait for what it leads to."""
        peer: SharedPeer | None = await self._peer(session_id)
        if peer is not None:
            return await peer.shared_signal(caller, session_id, name, request_id)
        args = {"name": name.value, "request_id": request_id}
        return await self._queue(caller, session_id, "shared_signal", args)

    async def shared_reset(
        self, caller: Caller, session_id: SessionId, request_id: RequestId
    ) -> SharedResult:
        """Queue a reset and wait for the new shell."""
        peer: SharedPeer | None = await self._peer(session_id)
        if peer is not None:
            return await peer.shared_reset(caller, session_id, request_id)
        return await self._queue(caller, session_id, "shared_reset", {"request_id": request_id})

    async def shared_read(
        self, caller: Caller, session_id: SessionId, offset: int, count: int
    ) -> SharedPage:
        """Read the history; takes no turn."""
        peer: SharedPeer | None = await self._peer(session_id)
        if peer is not None:
            return await peer.shared_read(caller, session_id, offset, count)
        args = {"offset": offset, "count": count}
        return from_plain(
            SharedPage, await self._ask(caller, session_id, "shared_read", args, READ_S)
        )

    async def _queue(
        self, caller: Caller, session_id: SessionId, method: str, args: dict[str, Any]
    ) -> SharedResult:
        raw = await self._ask(caller, session_id, method, args, None, repeat=False)
        return from_plain(SharedResult, raw)
