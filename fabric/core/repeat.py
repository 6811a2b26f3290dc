"""Calls that can be repeated: same request id, same answer.

Theory: a mutating call is *reserved* under its request id before it has any effect,
and *settled* once with its answer. A repeat with the same content joins the first call
while it runs and gets its answer afterwards; other content under the same id is a
conflict. Answers are kept for ``retention_s`` after they settled and at most
``max_entries`` of them, the oldest settled first to go; a running entry is never
dropped. Content is compared by digest, so no typed text is kept here.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

from fabric.core.errors import QueueFullError, RequestIdConflictError
from fabric.core.ids import RequestId

A = TypeVar("A")


@dataclass(slots=True)
class Entry(Generic[A]):
    """One reserved call; ``answer`` is the first call's handle or its result."""

    digest: bytes
    answer: A
    settled_at: float | None = None


def digest_of(*parts: object) -> bytes:
    """Hash the content of a call; parts are told apart by their lengths."""
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        raw = part if isinstance(part, bytes) else repr(part).encode()
        hasher.update(len(raw).to_bytes(8, "big"))
        hasher.update(raw)
    return hasher.digest()


class Repeats(Generic[A]):
    """The table of request ids of one scope (an owner, or a session)."""

    def __init__(self, *, retention_s: float, max_entries: int) -> None:
        self._retention_s = retention_s
        self._max_entries = max_entries
        self._running: dict[RequestId, Entry[A]] = {}
        self._settled: OrderedDict[RequestId, Entry[A]] = OrderedDict()

    def find(self, request_id: RequestId, digest: bytes, now: float) -> A | None:
        """Return the answer of an equal earlier call, or None. Raises: RequestIdConflictError."""
        self.expire(now)
        entry = self._running.get(request_id) or self._settled.get(request_id)
        if entry is None:
            return None
        if entry.digest != digest:
            raise RequestIdConflictError(
                f"request id {request_id} was used before with other content; use a new one",
                request_id=request_id,
            )
        return entry.answer

    def reserve(self, request_id: RequestId, digest: bytes, answer: A, now: float) -> None:
        """Record a new call before its first effect. Raises: QueueFullError."""
        self.expire(now)
        if len(self) >= self._max_entries:
            if not self._settled:
                raise QueueFullError("too many calls are running under their request ids")
            self._settled.popitem(last=False)
        self._running[request_id] = Entry(digest, answer)

    def settle(self, request_id: RequestId, now: float, answer: A | None = None) -> None:
        """Mark a call as ended; from now on its retention runs."""
        entry = self._running.pop(request_id, None) or self._settled.pop(request_id, None)
        if entry is None:
            return
        entry.settled_at = now
        if answer is not None:
            entry.answer = answer
        self._settled[request_id] = entry

    def forget(self, request_id: RequestId) -> None:
        """Drop a call that had no effect, so that its id may be tried again."""
        self._running.pop(request_id, None)
        self._settled.pop(request_id, None)

    def __len__(self) -> int:
        return len(self._running) + len(self._settled)

    def expire(self, now: float) -> None:
        """Drop the answers whose retention has passed."""
        while self._settled:
            request_id, entry = next(iter(self._settled.items()))
            if entry.settled_at is not None and now - entry.settled_at < self._retention_s:
                return
            del self._settled[request_id]
