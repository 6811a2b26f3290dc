"""``fabric token`` and ``fabric tls``: the credentials a gateway checks, made and withdrawn.

Everything is files that a running gateway looks at again when they change. They are
replaced as a whole, readable by their owner only, so that a reader never sees half of one.
"""

import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fabric.cli import authority
from fabric.cli.context import Context
from fabric.core.errors import InvalidRequestError
from fabric.core.ids import Principal, parse_label
from fabric.core.model import SandboxMode
from fabric.gateway.bearer import (
    new_signing_key,
    parse_key_file,
    parse_revoked_file,
    sign_token,
    token_id_of,
)

ACTIVE_KEYS = 2
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_TTL = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_PRINCIPAL = "principal:"


def token(context: Context) -> int:
    """Make and withdraw signed bearer tokens, and rotate the keys that sign them."""
    return _TOKEN[context.arguments.what](context)


def tls(context: Context) -> int:
    """Make a development CA and certificates of it."""
    given = context.arguments
    folder = Path(given.out) if given.out else context.state.prepare().folder / "tls"
    try:
        made = authority.dev_ca(folder, given.host, given.client, given.days)
    except OSError as error:
        raise InvalidRequestError(f"cannot write to {folder}: {error.strerror}") from error
    lines = [
        f"{'made' if made.is_new else 'kept'} the CA {made.ca_file}; for development only",
        "",
        "[gateway]",
        f'tls_cert_file = "{made.cert_file}"',
        f'tls_key_file = "{made.key_file}"',
        f'tls_ca_file = "{made.ca_file}"  # how gateways of several machines trust each other',
        f'tls_client_ca_file = "{made.ca_file}"  # only if callers come by certificate',
        "",
        f"export FABRIC_CA_FILE={made.ca_file}",
    ]
    lines += [
        f"export FABRIC_CERT_FILE={one.cert_file} FABRIC_KEY_FILE={one.key_file}"
        f"  # as {one.principal}"
        for one in made.clients
    ]
    context.output.result(made, "\n".join(lines), made.ca_file)
    return 0


def _create(context: Context) -> int:
    given = context.arguments
    file = _key_file(context)
    if not file.exists():
        _replace(file, new_signing_key() + "\n")
        context.output.note(f"made the signing key {file}")
    mode = SandboxMode(given.max_mode) if given.max_mode else None
    now, ttl_s = time.time(), seconds_of(given.ttl)
    principal = Principal(parse_label(given.principal, "principal"))
    made, token_id = sign_token(file, principal, mode, ttl_s, now)
    until = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(now + ttl_s))
    context.output.note(f"token {token_id} of {principal}, until {until}; shown only now")
    row = {
        "token": made,
        "token_id": token_id,
        "principal": principal,
        "max_mode": given.max_mode,
        "expires_at": now + ttl_s,
    }
    context.output.result(row, made, made)
    return 0


def _revoke(context: Context) -> int:
    file = _file(context, "revoked_file", "revoked")
    known = parse_revoked_file(file) if file.exists() else frozenset()
    names = [_revocable(text) for text in context.arguments.id]
    fresh = [name for name in dict.fromkeys(names) if name not in known]
    if fresh:
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        stamp = time.strftime("%Y-%m-%d", time.gmtime())
        _replace(file, before + "".join(f"{name}  {stamp}\n" for name in fresh))
    text = "\n".join(f"revoked {name}" for name in fresh) or "already revoked"
    context.output.result({"revoked": fresh, "file": str(file)}, text, "\n".join(fresh))
    return 0


def _keys(context: Context) -> int:
    given, file = context.arguments, _key_file(context)
    rows = parse_key_file(file) if file.exists() else {}
    dropped: list[str] = []
    if given.rotate:
        name, _, secret = new_signing_key().partition(" ")
        kept = [(name, secret), *rows.items()][:ACTIVE_KEYS]
        dropped = [name for name in rows if name not in dict(kept)]
        rows = dict(kept)
    if given.drop is not None:
        if given.drop not in rows or len(rows) < ACTIVE_KEYS:
            raise InvalidRequestError(
                f"{given.drop!r} is not a key that can be dropped from {file}"
            )
        del rows[given.drop]
        dropped.append(given.drop)
    if given.rotate or given.drop is not None:
        _replace(file, "".join(f"{name} {secret}\n" for name, secret in rows.items()))
    lines = [
        f"{name}  {'signs and verifies' if index == 0 else 'verifies'}"
        for index, name in enumerate(rows)
    ]
    lines += [f"{name}  dropped; its tokens are void" for name in dropped]
    row = {"keys": list(rows), "dropped": dropped, "file": str(file)}
    context.output.result(row, "\n".join(lines) or "(no keys)", "\n".join(rows))
    return 0


_TOKEN: dict[str, Callable[[Context], int]] = {
    "create": _create,
    "revoke": _revoke,
    "keys": _keys,
}


def seconds_of(text: str) -> float:
    """Read a length of time such as 90, 30m, 8h or 30d. Raises: InvalidRequestError."""
    found = _TTL.fullmatch(text)
    value = float(found[1]) * _UNITS[found[2] or "s"] if found else 0.0
    if not 0 < value <= 10 * 366 * 86_400:
        raise InvalidRequestError(f"{text!r} is not a length of time such as 30m, 8h or 30d")
    return value


def _revocable(text: str) -> str:
    """Return what to list: a token's id, the id in a whole token, or ``principal:<name>``."""
    if text.startswith(_PRINCIPAL):
        return _PRINCIPAL + parse_label(text.removeprefix(_PRINCIPAL), "principal")
    return token_id_of(text) if text.count(".") == 2 else parse_label(text, "token id")


def _key_file(context: Context) -> Path:
    return _file(context, "signing_key_file", "signing.keys")


def _file(context: Context, setting: str, name: str) -> Path:
    """Return a credential file: the flag, the setting, else one in the state folder."""
    flag = getattr(context.arguments, setting, None)
    named = flag or getattr(context.loaded.settings.gateway, setting)
    if named:
        return Path(named)
    file = context.state.prepare().folder / name
    context.output.note(f"gateways read it with --set gateway.{setting}={file}")
    return file


def _replace(file: Path, text: str) -> None:
    """Write a file as a whole, readable by its owner only. Raises: InvalidRequestError."""
    try:
        handle, scratch = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            Path(scratch).replace(file)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InvalidRequestError(f"cannot write {file}: {error.strerror}") from error
