"""A named Ray actor as a typed asynchronous object: bounded calls, our own errors.

Our own errors come through unchanged; Ray's become the one error given for "away". A call
that is cancelled, or runs out of time, is aborted over there before it returns here. A
question changes nothing, so it is aborted behind its caller's back: an actor beyond a cut
link confirms no abort, and whoever asked must not wait for that.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from fabric.core.errors import FabricError, InternalError

ABORT_TIMEOUT_S = 15.0
Away = Callable[[str], FabricError]
Undo = Callable[[Any], Awaitable[None]]
_Withdraw = Callable[[Any, str, "asyncio.Future[Any]"], Awaitable[None]]
_log = logging.getLogger(__name__)


class ActorHandle:
    """The actor called ``name``, found when it is first needed and again once it was replaced.

    ``away`` makes the error for an actor that cannot be reached, from a sentence why.
    """

    def __init__(self, name: str, namespace: str, away: Away) -> None:
        self.name = name
        self._namespace = namespace
        self._away = away
        self._handle: Any = None
        self._withdrawals: set[asyncio.Task[None]] = set()

    async def ask(self, method: str, *args: Any, timeout_s: float) -> Any:
        """Await the answer to a question for ``timeout_s`` and not a moment longer.

        Raises: what the method raises; what ``away`` makes.
        """
        return await self._call(method, args, timeout_s, self._withdraw_behind)

    async def call(
        self, method: str, *args: Any, timeout_s: float, undo: Undo | None = None
    ) -> Any:
        """Call and await the answer for ``timeout_s``, and then its abort.

        ``undo`` is given an answer that arrived although the caller has gone.
        Raises: what the method raises; what ``away`` makes.
        """

        async def withdraw(handle: Any, call_id: str, answer: "asyncio.Future[Any]") -> None:
            await self._withdraw(handle, call_id, answer, undo)

        return await self._call(method, args, timeout_s, withdraw)

    async def _call(
        self, method: str, args: tuple[Any, ...], timeout_s: float, withdraw: _Withdraw
    ) -> Any:
        try:
            async with asyncio.timeout(timeout_s):
                handle = await self._find()
        except TimeoutError as error:
            raise self._away("the cluster does not say where it is") from error
        call_id = secrets.token_hex(8)
        answer = self._submit(handle.invoke, call_id, method, args)
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(answer)
        except asyncio.CancelledError:
            await withdraw(handle, call_id, answer)
            raise
        except TimeoutError as error:
            await withdraw(handle, call_id, answer)
            raise self._away(f"it did not answer {method} within {timeout_s:g} s") from error
        except Exception as error:  # noqa: BLE001  (the boundary to Ray)
            raise self._translated(method, error) from None

    async def ready(self, timeout_s: float) -> None:
        """Wait until the actor has started. Raises: what kept it; what ``away`` makes."""
        await self._plain("ready", timeout_s)

    async def pid(self, timeout_s: float) -> int:
        """Return the actor's process id. Raises: what ``away`` makes."""
        return int(await self._plain("pid", timeout_s))

    async def build(self, timeout_s: float) -> Any:
        """Return what the actor is made of. Raises: what ``away`` makes, also for older ones."""
        return await self._plain("build", timeout_s)

    async def _plain(self, method: str, timeout_s: float) -> Any:
        try:
            async with asyncio.timeout(timeout_s):
                handle = await self._find()
                return await asyncio.shield(self._submit(getattr(handle, method)))
        except TimeoutError as error:
            raise self._away(f"it did not answer {method} within {timeout_s:g} s") from error
        except Exception as error:  # noqa: BLE001  (the boundary to Ray)
            raise self._translated(method, error) from None

    def forget(self) -> None:
        """Look the actor up again at the next call."""
        self._handle = None

    async def _find(self) -> Any:
        if self._handle is None:
            import ray

            try:
                # Asks the GCS and blocks for as long as that is away.
                self._handle = await asyncio.to_thread(ray.get_actor, self.name, self._namespace)
            except ValueError as error:
                raise self._away("there is none of this name") from error
            except Exception as error:
                raise self._translated("find", error) from error
        return self._handle

    def _submit(self, method: Any, *args: Any) -> "asyncio.Future[Any]":
        answer: asyncio.Future[Any] = asyncio.wrap_future(method.remote(*args).future())
        # Nobody may be left to look at the outcome of an aborted call.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        return answer

    async def _withdraw_behind(
        self, handle: Any, call_id: str, answer: "asyncio.Future[Any]"
    ) -> None:
        work = asyncio.get_running_loop().create_task(self._withdraw(handle, call_id, answer, None))
        self._withdrawals.add(work)
        work.add_done_callback(self._withdrawals.discard)

    async def _withdraw(
        self, handle: Any, call_id: str, answer: "asyncio.Future[Any]", undo: Undo | None
    ) -> None:
        work = asyncio.ensure_future(self._abort(handle, call_id, answer, undo))
        try:
            async with asyncio.timeout(ABORT_TIMEOUT_S):
                await asyncio.shield(work)
        except TimeoutError:
            _log.error("abort not confirmed", extra={"actor": self.name})
        except Exception as error:  # noqa: BLE001  (the boundary to Ray)
            if isinstance(error, FabricError):
                _log.error("abort failed", extra={"actor": self.name, "why": error.message})
            else:
                _log.warning("abort not delivered", extra={"actor": self.name, "why": str(error)})

    async def _abort(
        self, handle: Any, call_id: str, answer: "asyncio.Future[Any]", undo: Undo | None
    ) -> None:
        await self._submit(handle.abort, call_id)
        await asyncio.wait({answer})
        if undo is not None and answer.exception() is None:
            await undo(answer.result())

    def _translated(self, method: str, error: Exception) -> FabricError:
        from ray import exceptions

        if isinstance(error, FabricError):
            cause = getattr(error, "cause", error)
            return cause if isinstance(cause, FabricError) else error
        if isinstance(error, exceptions.RayTaskError):
            _log.error("call failed", extra={"actor": self.name, "method": method}, exc_info=error)
            return InternalError(f"{method} failed inside {self.name}; the log has the details")
        self.forget()
        _log.warning(
            "actor away", extra={"actor": self.name, "method": method, "why": type(error).__name__}
        )
        return self._away(f"it is away ({type(error).__name__})")
