"""The connection to one fabric: channels, deadlines, repeats and typed errors.

A link has one or several addresses of the same fabric. It stays with the one that
answers, since a call through another node's gateway costs a hop more, and moves to the
next in turn that says it is serving when that one is unavailable. With somewhere else to
go, a gateway that has fallen silent (a cut link sends no reset) is given up after some four
seconds by keep-alive pings. Only ``UNAVAILABLE`` is tried
again, only for calls that may be repeated (they carry a request id, or change nothing),
for ``REPEAT_S`` after it first failed, and never beyond the call's own deadline: a fabric
that has answered before comes back (a gateway or the registry is started again). One that
never has is given up after ``FIRST_TRIES``, since nobody may be there. Streams are not
resumed: the caller knows from which offset it wants to go on.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from fabric.core.errors import (
    DrainingError,
    FabricError,
    GatewayUnavailableError,
    InvalidRequestError,
)
from fabric.wire.metadata import Headers
from fabric.wire.methods import Method
from fabric.wire.status import DETAILS_HEADER, error_from

FIRST_TRIES = 6
REPEAT_S = 15.0
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0
# How soon a silent gateway is noticed where there is another, in seconds; twice this at most.
WATCH_S = 2
PROBE_S = 1.0
_HEALTH, _SERVING = "/grpc.health.v1.Health/Check", b"\x08\x01"
MAX_RECEIVE_BYTES = 67_108_864
_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_RECEIVE_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_retries", 0),  # repeats are decided here, where it is known what may repeat
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


@dataclass(frozen=True, slots=True)
class Tls:
    """How to trust the server, and who to be; ``ca_file`` None trusts the system's roots."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None


def _read(path: str | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidRequestError(f"cannot read {path}: {error.strerror}") from error


class Link:
    """Calls to one fabric. Make and use it inside one running event loop."""

    def __init__(
        self,
        addresses: Sequence[str],
        tls: Tls | None = None,
        *,
        watch: bool = False,
        repeat_s: float = REPEAT_S,
    ) -> None:
        if not addresses or not all(addresses):
            raise InvalidRequestError("an address of the fabric must be given")
        self._addresses = tuple(addresses)
        self._credentials: grpc.ChannelCredentials | None = None
        self._options: list[tuple[str, str | int]] = [*_OPTIONS]
        if watch or len(self._addresses) > 1:
            times = {"grpc.keepalive_time_ms": 1000 * WATCH_S}
            times["grpc.keepalive_timeout_ms"] = 1000 * WATCH_S
            self._options = [(key, times.get(key, value)) for key, value in _OPTIONS]
        if tls is not None:
            self._credentials = grpc.ssl_channel_credentials(
                _read(tls.ca_file), _read(tls.key_file), _read(tls.cert_file)
            )
            if tls.server_name:
                self._options.append(("grpc.ssl_target_name_override", tls.server_name))
        self._current = 0
        self._repeat_s = repeat_s
        self._has_answered = False
        self._channels: dict[int, grpc.aio.Channel] = {}
        self._calls: dict[tuple[int, str], Any] = {}
        self._background: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """The address in use."""
        return self._addresses[self._current]

    async def unary(
        self, method: Method, request: Any, headers: Headers, timeout_s: float, *, repeat: bool
    ) -> Any:
        """Call once, or again while the fabric is away and ``repeat`` allows it.

        Raises: the error the server named, DeadlineError, GatewayUnavailableError, and
        DrainingError where the server said so before it was gone.
        """
        data = request.SerializeToString()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        pause = FIRST_PAUSE_S
        told: DrainingError | None = None
        patience = deadline
        tries = 0
        while True:
            tries += 1
            index = self._current
            try:
                raw = await self._call(index, method)(
                    data, timeout=deadline - loop.time(), metadata=headers
                )
            except grpc.aio.AioRpcError as failure:
                error = _error_of(failure)
                if isinstance(error, DrainingError):
                    told = error
                elif told is not None and isinstance(error, GatewayUnavailableError):
                    error = told  # nobody answers any more because of what was said before
                if not (_is_away(failure) and error.worth_repeating):
                    raise error from None
                self._move_from(index)
                self._has_answered = self._has_answered or _has_reason(failure)
                if tries == 1:
                    patience = min(deadline, loop.time() + self._repeat_s)
                is_nobody = not self._has_answered and tries >= FIRST_TRIES
                if not repeat or is_nobody or loop.time() + pause >= patience:
                    raise error from None
                await self._skip_silent(deadline - pause)
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311
                pause = min(2 * pause, LONGEST_PAUSE_S)
            else:
                self._has_answered = True
                return method.response.FromString(raw)

    def in_background(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Go on with short work that its caller need not wait for; ``close`` does."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def stream(self, method: Method, request: Any, headers: Headers) -> AsyncIterator[Any]:
        """Yield the messages of a stream; leaving the iterator cancels the call."""
        index = self._current
        call = self._call(index, method)(request.SerializeToString(), metadata=headers)
        try:
            async for raw in call:
                yield method.response.FromString(raw)
        except grpc.aio.AioRpcError as failure:
            if _is_away(failure):
                self._move_from(index)
            raise _error_of(failure) from None
        finally:
            call.cancel()

    def duplex(self, method: Method, headers: Headers) -> "Duplex":
        """Begin a stream in both directions."""
        index = self._current
        call = self._call(index, method)(metadata=headers)
        return Duplex(method, call, lambda: self._move_from(index))

    def _call(self, index: int, method: Method) -> Any:
        call = self._calls.get((index, method.path))
        if call is None:
            channel = self._channel(index)
            if method.client_streaming:
                make: Any = channel.stream_stream
            else:
                make = channel.unary_stream if method.server_streaming else channel.unary_unary
            call = self._calls[index, method.path] = make(method.path)
        return call

    def _channel(self, index: int) -> grpc.aio.Channel:
        channel = self._channels.get(index)
        if channel is None:
            address = self._addresses[index]
            if self._credentials is None:
                channel = grpc.aio.insecure_channel(address, self._options)
            else:
                channel = grpc.aio.secure_channel(address, self._credentials, self._options)
            self._channels[index] = channel
        return channel

    async def _skip_silent(self, deadline: float) -> None:
        """Move on past addresses that do not say they are serving, at most once around."""
        loop = asyncio.get_running_loop()
        for _ in range(len(self._addresses) - 1):
            index = self._current
            limit = min(PROBE_S, deadline - loop.time())
            if limit <= 0 or await self._is_serving(index, limit):
                return
            self._move_from(index)

    async def _is_serving(self, index: int, limit_s: float) -> bool:
        check: Any = self._channel(index).unary_unary(_HEALTH)
        try:
            answer = await check(b"", timeout=limit_s)
        except grpc.aio.AioRpcError:
            return False
        return bytes(answer) == _SERVING

    def _move_from(self, index: int) -> None:
        if self._current == index:
            self._current = (index + 1) % len(self._addresses)

    async def close(self) -> None:
        """Close the channels; calls that run are cancelled."""
        if self._background:
            await asyncio.wait(set(self._background))
        channels, self._channels = list(self._channels.values()), {}
        self._calls.clear()
        for channel in channels:
            await channel.close(None)


class Duplex:
    """A stream in both directions; one reads, any number may write."""

    def __init__(self, method: Method, call: Any, moved: Callable[[], None]) -> None:
        self._method = method
        self._call = call
        self._moved = moved
        self._writing = asyncio.Lock()

    async def write(self, message: Any) -> None:
        """Send a message. Raises: the error that ended the stream, GatewayUnavailableError."""
        data = message.SerializeToString()
        async with self._writing:
            try:
                await self._call.write(data)
            except grpc.aio.AioRpcError as failure:
                raise self._failed(failure) from None
            except asyncio.InvalidStateError:
                raise GatewayUnavailableError("the stream has ended") from None

    async def read(self) -> Any:
        """Return the next message, None at the end. Raises: the error that ended the stream."""
        try:
            raw = await self._call.read()
        except grpc.aio.AioRpcError as failure:
            raise self._failed(failure) from None
        return None if raw is grpc.aio.EOF else self._method.response.FromString(raw)

    async def finish(self) -> None:
        """Say that nothing more is sent."""
        async with self._writing:
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await self._call.done_writing()

    def cancel(self) -> None:
        """Break the stream off."""
        self._call.cancel()

    def _failed(self, failure: grpc.aio.AioRpcError) -> FabricError:
        if _is_away(failure):
            self._moved()
        return _error_of(failure)


def _is_away(failure: grpc.aio.AioRpcError) -> bool:
    """Tell whether the call may fare better elsewhere, or later.

    A cancelled status without a reason is not ours and not the caller's, whose own cancel
    is no status: something on the way, or an overloaded server, dropped the call.
    """
    if failure.code() is grpc.StatusCode.UNAVAILABLE:
        return True
    if failure.code() is not grpc.StatusCode.CANCELLED:
        return False
    return not _has_reason(failure)


def _has_reason(failure: grpc.aio.AioRpcError) -> bool:
    """Tell whether a gateway of ours said this."""
    return DETAILS_HEADER in {str(key) for key, _ in failure.trailing_metadata() or ()}


def _error_of(failure: grpc.aio.AioRpcError) -> FabricError:
    if failure.code() is grpc.StatusCode.CANCELLED and _is_away(failure):
        return GatewayUnavailableError("the call was dropped on its way")
    trailing = {str(key): value for key, value in failure.trailing_metadata() or ()}
    return error_from(failure.code(), failure.details(), trailing)
