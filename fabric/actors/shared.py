"""The verbs of shared terminals, here or at the gateway of the node where they run."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Protocol

from fabric.core.ids import RequestId, SessionId
from fabric.core.model import Caller, SignalName
from fabric.core.plain import from_plain, to_plain
from fabric.core.shared import (
    PersonRequest,
    SharedPage,
    SharedResult,
    SharedSend,
    ViewEvent,
    ViewStart,
)
from workers.dial import ChannelClient

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

    def shared_view(
        self, caller: Caller, session_id: SessionId, start: ViewStart
    ) -> AsyncIterator[ViewEvent]:
        """Stream the screen and the state of the queue to one view."""
        ...

    async def shared_act(
        self, caller: Caller, session_id: SessionId, request: PersonRequest
    ) -> int:
        """Do what the person at the controlling view asks for."""
        ...


class SharedVerbs:
    """What ``Sessions`` knows of shared terminals beside its other verbs.

    An operation whose worker died under it raises OutcomeUnknownError; under its request id
    it is not run again by the same worker, and the next worker recovers the terminal first.
    """

    async def _peer(self, session_id: SessionId) -> Any:
        raise NotImplementedError

    async def _channel(self, session_id: SessionId) -> ChannelClient:
        raise NotImplementedError

    def _args(self, caller: Caller, session_id: SessionId, args: dict[str, Any]) -> dict[str, Any]:
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

    async def shared_act(
        self, caller: Caller, session_id: SessionId, request: PersonRequest
    ) -> int:
        """Do what the person at the controlling view asks for; returns the lease."""
        peer: SharedPeer | None = await self._peer(session_id)
        if peer is not None:
            return await peer.shared_act(caller, session_id, request)
        args = {"request": to_plain(request)}
        return int(await self._ask(caller, session_id, "shared_person", args, None, repeat=False))

    async def shared_view(
        self, caller: Caller, session_id: SessionId, start: ViewStart
    ) -> AsyncIterator[ViewEvent]:
        """Stream the screen and the state of the queue; ends with the generation.

        Raises: SessionLostError when the worker died; a new view finds its successor.
        """
        peer: SharedPeer | None = await self._peer(session_id)
        if peer is not None:
            async for event in peer.shared_view(caller, session_id, start):
                yield event
            return
        channel = await self._channel(session_id)
        args = self._args(caller, session_id, {"start": to_plain(start)})
        stream: Any = channel.stream("shared_view", args)
        async with contextlib.aclosing(stream) as items:
            async for raw in items:
                yield from_plain(ViewEvent, raw)

    async def _queue(
        self, caller: Caller, session_id: SessionId, method: str, args: dict[str, Any]
    ) -> SharedResult:
        raw = await self._ask(caller, session_id, method, args, None, repeat=False)
        return from_plain(SharedResult, raw)
