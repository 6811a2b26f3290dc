"""The exact bytes of a terminal: a ring in shared memory that outlives its writer.

The file (a memfd that the shim keeps) is a header, a ledger and the ring. All header
fields are unsigned 64-bit little endian, naturally aligned:

====== ======================================================
offset field
====== ======================================================
0      magic and version, ``PTYLOG`` ``\\0`` ``\\1``
8      size of the ring in bytes
16     first: absolute offset of the oldest retained byte
24     next: absolute offset of the byte to come
32     where the ring begins in the file: 65536, or 4096 in a file that may not grow
40     until when its worker may serve it (monotonic, milliseconds); 0: for ever
64     memory of the worker's own, up to the ring: tail cursors, then the ledger of sends
====== ======================================================

The byte with the absolute offset n stands at ``ring + n % size``. Readable is
``first <= n < next``, and ``next - first <= size``.

A writer may be killed between any two instructions, and its successor must not be shown
a byte that was not written. So an append goes in this order: move ``first`` past what
the new bytes will overwrite, copy them, move ``next``. Each field is stored by one
aligned 8-byte store. Killed in between, the log has forgotten some old bytes and does
not know the new ones; what it offers is right.

One writer at a time; a reader in the same process needs no lock.
"""

import mmap
import os
import struct
import sys

from fabric.core.errors import CursorExpiredError, InvalidRequestError
from workers.text.cursors import CURSOR_BYTES

LEDGER_AT = 64
HEADER_BYTES = 65_536
_SMALL_HEADER_BYTES = 4_096
_FIELDS = struct.Struct("<5Q")
_MAGIC = int.from_bytes(b"PTYLOG\0\1", "little")
_SIZE, _FIRST, _NEXT, _RING, _UNTIL = 1, 2, 3, 4, 5


def file_bytes(size: int) -> int:
    """Return how large the file of a ring of ``size`` bytes is."""
    return HEADER_BYTES + size


def shim_bytes(size: int) -> int:
    """Return what a shim is asked for, that its file has room for a ring of ``size`` bytes.

    A shim makes the file for good and adds a header of its own idea.
    """
    return file_bytes(size) - _SMALL_HEADER_BYTES


class ByteLog:
    """The ring behind ``fd``, made on first use; an existing one keeps its own size.

    The descriptor is duplicated by the mapping and stays the caller's.

    Raises:
        InvalidRequestError: the size is not positive, or the file is not a log of this
            version, or this machine's byte order does not fit it.
    """

    def __init__(self, fd: int, size: int) -> None:
        if sys.byteorder != "little":
            raise InvalidRequestError("the byte log needs a little-endian machine")
        if size <= 0:
            raise InvalidRequestError("the byte log needs a positive size", size=size)
        present = os.fstat(fd).st_size
        known = os.pread(fd, LEDGER_AT, 0) if present >= _SMALL_HEADER_BYTES else b""
        magic, kept, _, _, ring = _FIELDS.unpack(known[:40]) if known else (0, 0, 0, 0, 0)
        if magic == _MAGIC:
            size = kept
            if size <= 0 or ring < _SMALL_HEADER_BYTES or ring + size > present:
                raise InvalidRequestError("the byte log's header is damaged", size=size)
        elif magic:
            raise InvalidRequestError("the file is not a byte log of this version")
        else:
            ring = _make_room(fd, present, size)
        self._map = mmap.mmap(fd, ring + size)
        self._whole = memoryview(self._map)
        self._header = self._whole[:LEDGER_AT].cast("Q")
        self._ledger = self._whole[LEDGER_AT:ring]
        self._ring = self._whole[ring : ring + size]
        self._size = size
        if magic != _MAGIC:
            self._header[_SIZE] = size
            self._header[_FIRST] = 0
            self._header[_NEXT] = 0
            self._header[_RING] = ring
            self._header[0] = _MAGIC

    @property
    def size(self) -> int:
        """The capacity in bytes."""
        return self._size

    @property
    def first_offset(self) -> int:
        """The absolute offset of the oldest retained byte."""
        return self._header[_FIRST]

    @property
    def next_offset(self) -> int:
        """The absolute offset of the byte to come: all bytes ever appended."""
        return self._header[_NEXT]

    @property
    def serve_until(self) -> float | None:
        """Until when the session may be served, in monotonic seconds; None: for ever."""
        return self._header[_UNTIL] / 1000 or None

    @serve_until.setter
    def serve_until(self, until: float | None) -> None:
        self._header[_UNTIL] = 0 if until is None else max(1, int(until * 1000))

    @property
    def ledger(self) -> memoryview:
        """Writable memory beside the ring that outlives the worker, zero at first."""
        return self._ledger[:]

    def append(self, data: bytes | bytearray | memoryview) -> int:
        """Add ``data`` (any size; only the newest ``size`` bytes stay); return the next offset."""
        view = memoryview(data)
        begin = self._header[_NEXT]
        end = begin + len(view)
        oldest = end - self._size
        if oldest > self._header[_FIRST]:
            self._header[_FIRST] = oldest
        if len(view) > self._size:
            view = view[-self._size :]
            begin = oldest
        at = begin % self._size
        room = self._size - at
        self._ring[at : at + min(room, len(view))] = view[:room]
        if len(view) > room:
            self._ring[: len(view) - room] = view[room:]
        self._header[_NEXT] = end
        return end

    def views(self, offset: int, max_bytes: int) -> tuple[memoryview, ...]:
        """Return up to ``max_bytes`` bytes from ``offset`` on as at most two slices of the ring.

        They show the ring itself: use and release them before the next append.

        Raises:
            CursorExpiredError: ``offset`` lies below the oldest retained byte.
            InvalidRequestError: ``offset`` lies beyond the end.
        """
        first, end = self._header[_FIRST], self._header[_NEXT]
        if offset < first:
            raise CursorExpiredError(
                f"offset {offset} is below the oldest retained byte", oldest_offset=first
            )
        if offset > end:
            raise InvalidRequestError(f"offset {offset} is beyond the end", next_offset=end)
        count = min(max_bytes, end - offset)
        if count <= 0:
            return ()
        at = offset % self._size
        if at + count <= self._size:
            return (self._ring[at : at + count],)
        return (self._ring[at:], self._ring[: at + count - self._size])

    def read(self, offset: int, max_bytes: int) -> tuple[int, bytes]:
        """Return ``offset`` and up to ``max_bytes`` bytes from there; empty at the end.

        Raises:
            CursorExpiredError: ``offset`` lies below the oldest retained byte, which the
                metadata names (``oldest_offset``).
            InvalidRequestError: ``offset`` lies beyond the end.
        """
        views = self.views(offset, max_bytes)
        data = views[0].tobytes() if len(views) == 1 else b"".join(views)
        for view in views:
            view.release()
        return offset, data

    def close(self) -> None:
        """Unmap the file; its contents stay. Views handed out must be released before."""
        self._ring.release()
        self._ledger.release()
        self._header.release()
        self._whole.release()
        self._map.close()


def _make_room(fd: int, present: int, size: int) -> int:
    """Let the file hold a ring of ``size`` bytes; return where the ring begins."""
    if present >= file_bytes(size):
        return HEADER_BYTES
    if present >= _SMALL_HEADER_BYTES + size:  # made for this size, perhaps sealed
        return _SMALL_HEADER_BYTES
    os.ftruncate(fd, file_bytes(size))
    return HEADER_BYTES


def cursor_memory(log: ByteLog) -> memoryview:
    """Return the part of the memory beside the ring that holds the tail cursors."""
    return log.ledger[:CURSOR_BYTES]


def ledger_memory(log: ByteLog) -> memoryview:
    """Return the rest of the memory beside the ring, for the ledger of sends."""
    return log.ledger[CURSOR_BYTES:]
