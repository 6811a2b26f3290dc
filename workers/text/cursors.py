"""Where each consumer's tail stands, in memory that outlives the worker.

Theory: a tail moves its consumer's cursor, so the cursor must survive what the session
survives. It lies beside the byte log, in the memory that the shim keeps. Cursors are
absolute line numbers. A new worker rebuilds the lines from the bytes that are retained
and would number them from 0 again, so a *checkpoint* says which line was being written
at which offset: counting up to that offset while rebuilding gives the difference, and
every line gets back the number it had.

A tail whose answer was lost is repeated under its token (a digest of the request id): an
entry remembers the token of its last tail and where that one began, so the repeat gives
the same lines again, whichever worker serves it.

Layout, unsigned 64-bit little endian, each field one aligned store:

====== ==============================================================
0      which of the two checkpoints is valid, 0 or 1
8, 24  checkpoints: offset, line
40     the line the first tail of a consumer begins at
64     entries of 48 bytes: digest (2 fields), line, line before, token, age
====== ==============================================================

An entry is found by both fields of its digest; the first one is written last and zero
means unused, so an entry cut short by a kill is nobody's. The order ``before``,
``token``, ``line`` means that a kill in between leaves either the old cursor or a token
that leads back to it. The oldest entry gives way to a new consumer.
"""

import hashlib
import sys

CONSUMERS = 64
_HEAD = 8
_ENTRY = 6
CURSOR_BYTES = (_HEAD + CONSUMERS * _ENTRY) * 8
_WHICH, _CHECKPOINTS, _FIRST = 0, 1, 5
_KEY_HIGH, _KEY_LOW, _LINE, _BEFORE, _TOKEN, _AGE = range(_ENTRY)


def token_of(request_id: str) -> int:
    """Digest a request id; never 0."""
    return int.from_bytes(hashlib.blake2b(request_id.encode(), digest_size=8).digest()) | 1


def _key_of(consumer: str) -> tuple[int, int]:
    digest = hashlib.blake2b(consumer.encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8]) | 1, int.from_bytes(digest[8:])


class Cursors:
    """The cursors over ``memory``, which is ``CURSOR_BYTES`` long and zero at first."""

    def __init__(self, memory: memoryview) -> None:
        if len(memory) < CURSOR_BYTES or sys.byteorder != "little":
            raise ValueError("the cursors need their memory, little-endian")
        self._bytes = memory[:CURSOR_BYTES]
        self._fields = self._bytes.cast("Q")
        self._entries: dict[tuple[int, int], int] = {}
        self._age = 0
        for at in range(_HEAD, len(self._fields), _ENTRY):
            if self._fields[at]:
                self._entries[self._fields[at], self._fields[at + 1]] = at
                self._age = max(self._age, self._fields[at + _AGE])

    @property
    def checkpoint(self) -> tuple[int, int]:
        """The offset and the number of the line being written there."""
        at = _CHECKPOINTS + 2 * (self._fields[_WHICH] & 1)
        return self._fields[at], self._fields[at + 1]

    def note(self, offset: int, line: int) -> None:
        """Set the checkpoint."""
        fields = self._fields
        which = 1 - (fields[_WHICH] & 1)
        at = _CHECKPOINTS + 2 * which
        fields[at] = offset
        fields[at + 1] = line
        fields[_WHICH] = which

    @property
    def first_line(self) -> int:
        """Where a consumer begins that has no cursor yet."""
        return self._fields[_FIRST]

    @first_line.setter
    def first_line(self, line: int) -> None:
        self._fields[_FIRST] = line

    def begin(self, consumer: str, token: int) -> int:
        """Return the line a tail begins at; a repeated ``token`` (not 0) begins where it did."""
        at = self._entries.get(_key_of(consumer))
        if at is None:
            return self.first_line
        fields = self._fields
        if token and fields[at + _TOKEN] == token:
            return fields[at + _BEFORE]
        return fields[at + _LINE]

    def move(self, consumer: str, before: int, line: int, token: int) -> None:
        """Put the cursor of a consumer to ``line``; its tail began at ``before``."""
        key = _key_of(consumer)
        at = self._entries.get(key)
        if at is None:
            at = self._room()
        fields = self._fields
        self._age += 1
        fields[at + _BEFORE] = before
        fields[at + _TOKEN] = token
        fields[at + _LINE] = line
        fields[at + _AGE] = self._age
        if key not in self._entries:
            fields[at + _KEY_LOW] = key[1]
            fields[at + _KEY_HIGH] = key[0]
            self._entries[key] = at

    def _room(self) -> int:
        """Return a free entry, the least used one if there is none."""
        if len(self._entries) < CONSUMERS:
            taken = set(self._entries.values())
            every = range(_HEAD, len(self._fields), _ENTRY)
            return next(at for at in every if at not in taken)
        key, at = min(self._entries.items(), key=lambda item: self._fields[item[1] + _AGE])
        self._fields[at + _KEY_HIGH] = 0
        del self._entries[key]
        return at

    def release(self) -> None:
        """Let go of the memory."""
        self._fields.release()
        self._bytes.release()
