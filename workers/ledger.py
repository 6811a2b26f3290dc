"""The request ids of recent sends, in memory that outlives the worker.

Theory: a send is recorded *before its first byte is written*, so a worker that takes the
session over after a crash can tell a repeated call from a new one without asking
anybody. The record lies behind the byte log's header in the same shared memory and costs
no system call. It is a ring of fixed entries:

    16 bytes  digest of the request id (zero: unused)
    16 bytes  digest of the content
     8 bytes  offset of the byte log at the start of the send, little endian
     8 bytes  1 while it runs, 2 once it settled

The id digest is written last, so an entry cut short by a crash is an unused one.
"""

import hashlib
import struct
from dataclasses import dataclass

from fabric.core.ids import RequestId

ENTRY = struct.Struct("<16s16sQQ")
_RUNNING, _SETTLED = 1, 2
_UNUSED = bytes(16)


@dataclass(frozen=True, slots=True)
class Trace:
    """What is known of an earlier send."""

    content: bytes
    first_offset: int
    settled: bool


def id_digest(request_id: RequestId) -> bytes:
    """Hash a request id to 16 bytes."""
    return hashlib.blake2b(request_id.encode(), digest_size=16).digest()


class Ledger:
    """The ring over ``memory``, which must be writable and outlive this process."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        self.capacity = len(memory) // ENTRY.size
        self._slots: dict[bytes, int] = {}
        self._keys: list[bytes] = [_UNUSED] * self.capacity
        newest = -1
        self._next = 0
        for slot in range(self.capacity):
            key, _, offset, _ = ENTRY.unpack_from(memory, slot * ENTRY.size)
            if key != _UNUSED:
                self._slots[key] = slot
                self._keys[slot] = key
                if offset >= newest:
                    newest, self._next = offset, (slot + 1) % self.capacity

    def find(self, request_id: RequestId) -> Trace | None:
        """Return what is known of a request id, or None."""
        slot = self._slots.get(id_digest(request_id))
        if slot is None:
            return None
        _, content, offset, state = ENTRY.unpack_from(self._memory, slot * ENTRY.size)
        return Trace(content, offset, state == _SETTLED)

    def record(self, request_id: RequestId, content: bytes, first_offset: int) -> None:
        """Note a send that is about to write, over the oldest entry."""
        key = id_digest(request_id)
        at = self._next * ENTRY.size
        self._memory[at : at + 16] = _UNUSED
        if self._slots.get(self._keys[self._next]) == self._next:
            del self._slots[self._keys[self._next]]
        body = ENTRY.pack(_UNUSED, content, first_offset, _RUNNING)
        self._memory[at + 16 : at + ENTRY.size] = body[16:]
        self._memory[at : at + 16] = key
        self._slots[key] = self._next
        self._keys[self._next] = key
        self._next = (self._next + 1) % self.capacity

    def settle(self, request_id: RequestId) -> None:
        """Note that a send has its result."""
        slot = self._slots.get(id_digest(request_id))
        if slot is not None:
            end = (slot + 1) * ENTRY.size
            self._memory[end - 8 : end] = _SETTLED.to_bytes(8, "little")

    def unsettled(self) -> int:
        """Count the sends that never settled."""
        states = (
            ENTRY.unpack_from(self._memory, slot * ENTRY.size)[3] for slot in self._slots.values()
        )
        return sum(state == _RUNNING for state in states)

    def release(self) -> None:
        """Let go of the memory."""
        self._memory.release()
