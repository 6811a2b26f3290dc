"""A plain object served to other processes: calls by name that can be aborted.

The object lives in an event loop and a thread of this class, so it runs from the moment
its process starts, also when Ray has started it again and nobody has called yet. A call
carries an id of the caller's; ``abort`` cancels the call of that id and returns when it
has ended, because cancelling the awaiting side of a Ray call never reaches the actor.
An abort may overtake its call; then the call ends before it begins.
"""

import asyncio
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import uvloop

from fabric.core import log
from fabric.core.errors import CancelledCallError, FabricError, InternalError, InvalidRequestError
from fabric.core.model import Caller

T = TypeVar("T")
MAX_OVERTAKEN = 1024
_log = logging.getLogger(__name__)


class Hosted:
    """Serve ``methods`` of the object that ``make`` returns; subclasses say how to make it."""

    methods: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self._calls: dict[str, asyncio.Task[Any]] = {}
        self._overtaken: OrderedDict[str, None] = OrderedDict()
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="hosted", daemon=True)
        self._thread.start()
        self._object = asyncio.run_coroutine_threadsafe(self._made(), self._loop)

    async def make(self) -> Any:
        """Make and start the object, inside the loop."""
        raise NotImplementedError

    async def invoke(self, call_id: str, method: str, args: Sequence[Any]) -> Any:
        """Call a method of the object. Raises: what it raises, CancelledCallError."""
        return await self._inside(self._invoke(call_id, method, args))

    async def abort(self, call_id: str) -> None:
        """Cancel a call and wait for its end."""
        await self._inside(self._abort(call_id))

    async def ready(self) -> bool:
        """Wait until the object has started. Raises: what kept it from starting."""
        await asyncio.shield(asyncio.wrap_future(self._object))
        return True

    def end(self) -> None:
        """End the loop and its thread; the object is dropped as it is."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def pid(self) -> int:
        """Return this process's id."""
        return os.getpid()

    async def _inside(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _made(self) -> Any:
        try:
            return await self.make()
        except FabricError:
            raise
        except Exception as error:
            _log.exception("not started")
            raise InternalError(f"{type(self).__name__} could not start: {error}") from error

    async def _invoke(self, call_id: str, method: str, args: Sequence[Any]) -> Any:
        if method not in self.methods:
            raise InvalidRequestError(f"{type(self).__name__} has no method {method!r}")
        if self._overtaken.pop(call_id, self) is None:
            raise CancelledCallError("the call was cancelled before it began")
        if args and isinstance(args[0], Caller):
            log.owner.set(args[0].owner_id)
        task = self._loop.create_task(self._perform(method, args))
        self._calls[call_id] = task
        try:
            return await task
        except asyncio.CancelledError as error:
            raise CancelledCallError("the call was cancelled; it was rolled back") from error
        except FabricError:
            raise
        except Exception as error:
            _log.exception("call failed", extra={"method": method})
            raise InternalError(f"{method} failed inside; the log has the details") from error
        finally:
            del self._calls[call_id]

    async def _perform(self, method: str, args: Sequence[Any]) -> Any:
        # Aborting this call must not abort the start that it waits for.
        target = await asyncio.shield(asyncio.wrap_future(self._object))
        return await getattr(target, method)(*args)

    async def _abort(self, call_id: str) -> None:
        task = self._calls.get(call_id)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
            return
        self._overtaken[call_id] = None
        while len(self._overtaken) > MAX_OVERTAKEN:
            self._overtaken.popitem(last=False)
