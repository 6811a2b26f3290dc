"""``fabric view``: a link for a browser, and the browser itself where there is a display.

The link holds a ticket, so it never becomes an argument of another program, where every
user of the machine could read it: the browser is given a file of this user's that leads to
the link. What such a file still says is worth nothing a moment later.
"""

import argparse
import html
import json
import os
import secrets
import sys
import time
import webbrowser
from collections.abc import Mapping
from pathlib import Path

from fabric.cli.context import Context
from fabric.cli.terminals import call, resolve
from fabric.client.client import FabricClient
from fabric.core.errors import InvalidRequestError
from fabric.core.shared import ViewTicket

KEPT_S = 60.0
_PAGE = """<!doctype html><meta charset="utf-8"><title>pty-fabric</title>
<meta name="referrer" content="no-referrer"><script>location.replace({script})</script>
<p><a href="{link}">Open the terminal</a></p>
"""


def view(context: Context) -> int:
    """Print a link and open it."""
    ticket = call(context, "the gateway's answer", lambda client: ask(client, context.arguments))
    show(context, ticket)
    return 0


async def ask(client: FabricClient, given: argparse.Namespace) -> ViewTicket:
    """Get a link. Raises: InvalidRequestError, SessionNotFoundError, UnsupportedError."""
    if given.session and given.overview:
        raise InvalidRequestError("a link shows one session or the list, not both")
    at = (await resolve(client, given.session)).id if given.session else None
    return await client.view_ticket(at, overview=given.overview, readonly=given.read_only)


def show(context: Context, ticket: ViewTicket) -> None:
    """Print a link and open it."""
    context.output.result(ticket, ticket.url, ticket.url)
    context.output.note(f"good once, within {ticket.expires_in_s:g} s")
    if not context.arguments.no_open and has_display(context.environ):
        webbrowser.open(_leading_to(ticket.url, context.state.prepare().folder).as_uri())


def has_display(environ: Mapping[str, str]) -> bool:
    """Tell whether a browser could show itself here."""
    if environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"):
        return True
    return sys.platform == "darwin" and not environ.get("SSH_CONNECTION")


def _leading_to(url: str, folder: Path) -> Path:
    for old in folder.glob("view-*.html"):
        if old.stat().st_mtime < time.time() - KEPT_S:
            old.unlink(missing_ok=True)
    path = folder / f"view-{secrets.token_hex(8)}.html"
    text = _PAGE.format(script=json.dumps(url).replace("<", "\\u003c"), link=html.escape(url))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    return path
