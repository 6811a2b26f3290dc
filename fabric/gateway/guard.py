"""The way in and out of every RPC.

authenticate → owner token → deadline → parse → call → error mapping → one line in the log

Nothing of a request is parsed before its caller is known. Errors of ours leave with
their reason; anything else leaves as ``INTERNAL`` and its details stay in the log. A
cancelled call stays cancelled, unless the gateway itself ended it: then it leaves with
the reason it was ended for.
"""

import asyncio
import hmac
import logging
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, cast

import grpc
from google.protobuf.message import DecodeError

from fabric.core import log, tracing
from fabric.core.context import from_peer
from fabric.core.errors import (
    DrainingError,
    FabricError,
    InputTooLargeError,
    InvalidRequestError,
    LimitReachedError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from fabric.core.ids import OwnerId, Principal, parse_owner_id
from fabric.core.model import Caller
from fabric.core.policy import OwnerPolicies
from fabric.core.settings import GatewaySettings
from fabric.gateway.auth import Authenticator
from fabric.gateway.bearer import Identity
from fabric.gateway.calls import NO_OWNER, Access, Call, Kind, Route
from fabric.gateway.fairness import HOLD_OF_WAITS_S, HOLD_S, Turns
from fabric.gateway.meters import Meter, Meters, label_of
from fabric.gateway.tokens import KeyRing, UnknownKeyError
from fabric.wire import metadata, status
from fabric.wire.fields import refuse_unknown
from fabric.wire.methods import Method

PEER = Identity(Principal("peer"))
MAX_LOGGED_ID = 140
MIN_TURNS = 2
_log = logging.getLogger(__name__)
Refresh = Callable[[], Awaitable[None]]


class Guard:
    """Wrap handlers so that only welcome calls reach them and only clean answers leave."""

    def __init__(
        self,
        settings: GatewaySettings,
        authenticator: Authenticator,
        keys: KeyRing,
        refresh: Refresh,
        meters: Meters,
        policies: OwnerPolicies | None = None,
        tracer: tracing.Tracer | None = None,
    ) -> None:
        self._settings = settings
        self._authenticator = authenticator
        self._keys = keys
        self._refresh = refresh
        self._meters = meters
        self._tracer = tracer
        self._running: dict[asyncio.Task[Any], tuple[Call, Kind]] = {}
        self._policies = policies or OwnerPolicies()
        self._turns = Turns(
            settings.turns_per_owner or max(MIN_TURNS, os.cpu_count() or 1),
            settings.max_line_per_owner,
            meters.waited,
        )
        self._waits: Counter[str] = Counter()
        self._principal_waits: Counter[str] = Counter()
        self._idle = asyncio.Event()
        self._idle.set()
        self.draining = False
        self._for_good = False

    @property
    def active(self) -> int:
        """How many calls run."""
        return len(self._running)

    @property
    def in_line(self) -> int:
        """How many calls wait for their owner's turn."""
        return self._turns.waiting

    def running(self) -> list[str]:
        """List the calls that run by the names of their methods."""
        return [label_of(call.method) for call, _ in self._running.values()]

    def handler(self, method: Method, route: Route) -> "grpc.RpcMethodHandler[Any, Any]":
        """Wrap one route as gRPC wants it; messages pass as bytes."""
        if method.client_streaming:
            return grpc.stream_stream_rpc_method_handler(self._streaming(method, route))
        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(self._streaming(method, route))
        return grpc.unary_unary_rpc_method_handler(self._unary(method, route))

    # -- the two shapes -------------------------------------------------------------------

    def _unary(self, method: Method, route: Route) -> Callable[[bytes, Any], Awaitable[bytes]]:
        handler = route.handler
        meter = self._meters.of(method)
        answered = meter.answered

        async def rpc(raw: bytes, context: Any) -> bytes:
            answer = b""

            async def body(call: Call) -> None:
                nonlocal answer
                response = await handler(call, self._parse(method, raw))
                answer = response.SerializeToString()
                if answered is not None:
                    answered(response)

            await self._run(method, route, context, body, len(raw), lambda: len(answer), meter)
            return answer

        return rpc

    def _streaming(self, method: Method, route: Route) -> Callable[[Any, Any], Awaitable[None]]:
        handler = route.handler
        meter = self._meters.of(method)

        async def rpc(incoming: Any, context: Any) -> None:
            sent = 0

            async def write(response: Any) -> None:
                nonlocal sent
                data = response.SerializeToString()
                sent += len(data)
                await context.write(data)

            async def messages() -> AsyncIterator[Any]:
                async for raw in incoming:
                    yield self._parse(method, raw)

            async def body(call: Call) -> None:
                call.unbound()
                if method.client_streaming:
                    await handler(call, messages(), write)
                else:
                    await handler(call, self._parse(method, incoming), write)

            size = 0 if method.client_streaming else len(incoming)
            await self._run(method, route, context, body, size, lambda: sent, meter)

        return rpc

    # -- one call -------------------------------------------------------------------------

    async def _run(
        self,
        method: Method,
        route: Route,
        context: Any,
        body: Callable[[Call], Awaitable[None]],
        bytes_in: int,
        bytes_out: Callable[[], int],
        meter: Meter,
    ) -> None:
        started = time.perf_counter()
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        call: Call | None = None
        error: FabricError | None = None
        code, reason = "CANCELLED", ""
        span = None if self._tracer is None else self._begin_span(meter, context)
        try:
            try:
                call = await self._admit(method, route, context, task)
                self._enter(task, call, route)
                try:
                    await self._in_turn(call, route, body)
                finally:
                    self._leave(task, call, route)
            except asyncio.CancelledError:
                error = None if call is None else call.ending
                if error is None:
                    raise
                task.uncancel()
            except FabricError as failure:
                error = failure
            except Exception:  # noqa: BLE001  (the boundary: the details stay in the log)
                _log.exception("call failed", extra={"method": method.path})
                error = status.internal()
            if error is None:
                code = "OK"
                return
            answer = status.status_of(error)
            code, reason = answer.code.name, error.reason
            self._meters.failed(reason)
            await context.abort_with_status(answer)
        finally:
            seconds = time.perf_counter() - started
            meter.ended(code, seconds, bytes_in, bytes_out())
            if span is not None:
                span.end(code)
            if _log.isEnabledFor(logging.INFO):
                facts: dict[str, object] = {
                    "method": method.name,
                    "code": code,
                    "ms": round(seconds * 1000, 2),
                    "bytes_in": bytes_in,
                    "bytes_out": bytes_out(),
                }
                if reason:
                    facts["reason"] = reason
                _log.info("call ended", extra=facts)

    def _begin_span(self, meter: Meter, context: Any) -> tracing.Span | None:
        if self._tracer is None:
            return None
        headers = metadata.text_headers(context.invocation_metadata())
        span = self._tracer.begin(meter.label, headers.get(tracing.HEADER), {})
        tracing.current.set(span.traceparent)
        return span

    async def _in_turn(
        self, call: Call, route: Route, body: Callable[[Call], Awaitable[None]]
    ) -> None:
        """Serve a call when its owner's turn has come."""
        if call.owner_id is None:
            return await body(call)
        hold_s = HOLD_OF_WAITS_S if route.kind is Kind.WAIT else HOLD_S
        turn = await self._turns.take(call.owner_id, hold_s)
        try:
            await body(call)
        finally:
            turn.end()

    def _parse(self, method: Method, raw: bytes) -> Any:
        if len(raw) > self._settings.max_message_bytes:
            raise InputTooLargeError(
                f"the request has {len(raw)} bytes; at most {self._settings.max_message_bytes} fit",
                max_bytes=self._settings.max_message_bytes,
            )
        try:
            request = method.request.FromString(raw)
        except DecodeError as error:
            raise InvalidRequestError("the request cannot be parsed") from error
        refuse_unknown(request)
        session_id = getattr(request, "session_id", "")
        if session_id:
            log.session.set(session_id[:MAX_LOGGED_ID])
        request_id = getattr(request, "request_id", "")
        if request_id:
            log.request_id.set(request_id[:MAX_LOGGED_ID])
        return request

    # -- who may come in ------------------------------------------------------------------

    async def _admit(
        self, method: Method, route: Route, context: Any, task: "asyncio.Task[Any]"
    ) -> Call:
        if self.draining and not route.while_draining:
            raise self._draining_error()
        headers = metadata.text_headers(context.invocation_metadata())
        request_id = headers.get(metadata.REQUEST_ID)
        if request_id:
            log.request_id.set(request_id[:MAX_LOGGED_ID])
        if metadata.PEER_KEY in headers:
            identity = PEER
            caller: Caller | None = self._peer(headers, route)
        else:
            identity = self._authenticator.identify(headers, context)
            caller = await self._owner(headers, identity, route)
        if caller is not None:
            log.owner.set(caller.owner_id)
        call = Call(method, identity, caller, task, context.time_remaining(), self._settings)
        call.bound(self._settings.default_deadline_s)
        return call

    def _peer(self, headers: Mapping[str, str], route: Route) -> Caller:
        given = headers[metadata.PEER_KEY].encode()
        if not hmac.compare_digest(given, self._keys.peer_key.encode()):
            raise UnauthenticatedError("the peer key is not valid")
        if route.access is not Access.DATA:
            raise PermissionDeniedError("gateways forward calls to sessions only")
        epoch = headers.get(metadata.PEER_EPOCH, "")
        if not epoch.isdecimal():
            raise InvalidRequestError(f"{metadata.PEER_EPOCH} must be a number")
        from_peer.set(True)
        return Caller(OwnerId(parse_owner_id(headers.get(metadata.PEER_OWNER, ""))), int(epoch))

    async def _owner(
        self, headers: Mapping[str, str], identity: Identity, route: Route
    ) -> Caller | None:
        if route.access is Access.PRINCIPAL:
            return None
        token = headers.get(metadata.OWNER_TOKEN)
        if not token:
            raise UnauthenticatedError(NO_OWNER)
        try:
            try:
                claim = self._keys.tokens.verify(token)
            except UnknownKeyError:
                if not self._keys.may_refresh():
                    raise
                await self._refresh()
                claim = self._keys.tokens.verify(token)
        except UnknownKeyError:
            message = "the owner token was signed with an unknown key; acquire the owner again"
            raise UnauthenticatedError(message) from None
        if claim.principal != identity.principal:
            raise PermissionDeniedError("the owner token belongs to another principal")
        return claim.caller

    def _enter(self, task: "asyncio.Task[Any]", call: Call, route: Route) -> None:
        if route.kind is not Kind.QUICK and call.owner_id is not None:
            waiting = self._waits[call.owner_id]
            if waiting >= self._settings.max_waits_per_owner:
                raise LimitReachedError(
                    f"the owner has {waiting} waiting calls at this gateway, as many as it may",
                    limit=self._settings.max_waits_per_owner,
                )
            self._check_quota(call.identity.principal)
            self._waits[call.owner_id] = waiting + 1
            self._principal_waits[call.identity.principal] += 1
        self._running[task] = (call, route.kind)
        self._idle.clear()

    def _leave(self, task: "asyncio.Task[Any]", call: Call, route: Route) -> None:
        call.unbound()
        del self._running[task]
        if not self._running:
            self._idle.set()
        if route.kind is not Kind.QUICK and call.owner_id is not None:
            _one_less(self._waits, call.owner_id)
            _one_less(self._principal_waits, call.identity.principal)

    def _check_quota(self, principal: str) -> None:
        limit = self._policies.of(principal).max_waits
        waiting = self._principal_waits[principal]
        if limit is not None and waiting >= limit and principal != PEER.principal:
            raise LimitReachedError(
                f"principal {principal} has {waiting} waiting calls at this gateway, as many as"
                " it may",
                limit=limit,
            )

    # -- drain ----------------------------------------------------------------------------

    async def evict(self, farewell_s: float) -> None:
        """Tell every call that the fabric goes down for good; do not wait for its end.

        Calls that are about to answer have ``farewell_s`` for it.
        """
        self.draining = self._for_good = True
        self._end(lambda kind: kind is Kind.WAIT)
        await self._until_idle(farewell_s)
        self._end(lambda kind: True)

    async def drain(self, drain_s: float, cleanup_s: float) -> int:
        """Take no new calls, end waits now and the rest after ``drain_s``; count what is left.

        Calls that were ended get ``cleanup_s`` more to clean up behind them.
        """
        self.draining = True
        self._end(lambda kind: kind is Kind.WAIT)
        if not await self._until_idle(drain_s):
            self._end(lambda kind: True)
            await self._until_idle(cleanup_s)
        return len(self._running)

    def _end(self, which: Callable[[Kind], bool]) -> None:
        for call, kind in list(self._running.values()):
            if which(kind):
                call.end(self._draining_error())

    def _draining_error(self) -> DrainingError:
        if self._for_good:
            return DrainingError("the fabric goes down with its sessions", for_good="true")
        return DrainingError("this gateway is shutting down; call another one")

    async def _until_idle(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True


def _one_less(counts: Counter[str], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
