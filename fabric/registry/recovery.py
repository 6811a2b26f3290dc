"""What a registry does with the journal before it answers anybody."""

import secrets
from collections.abc import Callable
from typing import Any

from fabric.core.model import CloseResult, GatewayKeys, OpenResult, OwnerGrant, ReleaseReceipt
from fabric.core.plain import from_plain
from fabric.registry.books import Books
from fabric.registry.calls import Ticket, ticket_of
from fabric.registry.instructions import Change, Drop, Instruction, Kind, Put
from fabric.registry.journal import Rows
from fabric.registry.session import session_of

_KEYS = "keys"
_KEY_BYTES = 32
KEPT_TOKEN_KEYS = 2
_ANSWERS: dict[str, Callable[[Any], object]] = {
    "acquire": lambda data: from_plain(OwnerGrant, data),
    "set_mode": lambda data: from_plain(OwnerGrant, data),
    "open": lambda data: from_plain(OpenResult, data),
    "close": lambda data: from_plain(CloseResult, data),
    "release": lambda data: from_plain(ReleaseReceipt, data),
}


def restore(books: Books, rows: Rows) -> list[Ticket]:
    """Fill the books from the journal; return the calls that had begun and may be resumed."""
    now = books.clock.monotonic()
    table = books.table
    for key, body in rows[Kind.OWNER].items():
        table.owners.restore(key, body, now)
    for key, body in rows[Kind.TOMBSTONE].items():
        stones = table.owners.tombstones if key.startswith("own_") else table.tombstones
        stones.restore(key, body, now)
    out: list[Instruction] = []
    for key, body in rows[Kind.SESSION].items():
        out += table.restore(session_of(key, body))
    for key, body in rows[Kind.TASK].items():
        books.tasks.restore(key, body, now)
    for key, body in rows[Kind.EVENT].items():
        books.events.restore_event(key, body)
    for key, body in rows[Kind.STREAM].items():
        books.events.restore_stream(key, body)
    begun, changes = _restore_calls(books, rows)
    books.commit([*out, *changes])
    return begun


def gateway_keys(books: Books, rows: Rows) -> GatewayKeys:
    """Return the fabric's keys, made once and kept in the journal."""
    body = rows[Kind.FACT].get(_KEYS)
    if body is not None:
        return from_plain(GatewayKeys, body)
    keys = GatewayKeys((secrets.token_hex(_KEY_BYTES),), secrets.token_hex(_KEY_BYTES))
    books.write([keys_row(keys)], must=True)
    return keys


def with_fresh_token_key(keys: GatewayKeys) -> GatewayKeys:
    """Put a new token key first and keep the latest old one."""
    kept = (secrets.token_hex(_KEY_BYTES), *keys.token_keys)[:KEPT_TOKEN_KEYS]
    return GatewayKeys(kept, keys.peer_key)


def keys_row(keys: GatewayKeys) -> Put:
    """Return the row of the keys."""
    body = {"token_keys": list(keys.token_keys), "peer_key": keys.peer_key}
    return Put(Kind.FACT, _KEYS, body)


def _restore_calls(books: Books, rows: Rows) -> tuple[list[Ticket], list[Change]]:
    begun: list[Ticket] = []
    changes: list[Change] = []
    settled: list[tuple[float, Ticket, Any]] = []
    for key, body in rows[Kind.REQUEST].items():
        ticket = ticket_of(key, body)
        if body["settled_at"] is not None:
            settled.append((float(body["settled_at"]), ticket, body["answer"]))
        elif ticket.kind != "open":
            begun.append(ticket)
        elif ticket.args.get("command"):
            books.calls.unknown(ticket)
        else:
            changes.append(Drop(Kind.REQUEST, key))
    for at, ticket, answer in sorted(settled, key=lambda item: item[0]):
        books.calls.restore(ticket, _ANSWERS[ticket.kind](answer), at)
    return begun, changes
