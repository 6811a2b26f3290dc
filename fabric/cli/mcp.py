"""The command ``fabric mcp``: the tools for any MCP client.

Over standard input and output the process is one connection and one owner. Without a name
(``--agent``, ``FABRIC_AGENT``) the owner ends with the connection; a named one is left to its
lease, so that a harness that restarts finds its sessions again.
"""

import importlib.util
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING

from fabric.cli.connect import gateway_of, tls_of, token_of
from fabric.cli.context import Context, run_interruptible
from fabric.client.client import FabricClient
from fabric.core import log
from fabric.core.errors import FabricError, UnsupportedError
from fabric.tools.table import Surface, guidance_of

if TYPE_CHECKING:
    from fabric.mcp.seats import Visitor

EXTRA = ("mcp", "uvicorn")


def mcp(context: Context) -> int:
    """Serve until the client leaves, or until told to end."""
    missing = [name for name in EXTRA if importlib.util.find_spec(name) is None]
    if missing:
        raise UnsupportedError(
            "fabric mcp needs an extra that is not installed here",
            hint="pip install 'pty-fabric[mcp]', into an environment of its own",
        )
    from fabric.mcp.seats import Seats, Visitor
    from fabric.mcp.transports import serve_http, serve_stdio

    given = context.arguments
    settings = context.loaded.settings
    log.configure("WARNING" if settings.log.level == "INFO" else settings.log.level)
    chosen = frozenset(map(Surface, given.surface)) or frozenset(Surface)
    options = {
        "version": metadata.version("pty-fabric"),
        "guidance": guidance_of(chosen, background=settings.tasks.enabled),
        "surfaces": given.surface,
    }
    connect = partial(_client, context, own_token=given.http is None)
    if given.http is None:
        named = getattr(given, "agent", None) or context.environ.get("FABRIC_AGENT")
        visitor = Visitor(agent=str(context.agent) if named else None)
        seats = Seats(connect, keep=bool(named))
        work = partial(serve_stdio, seats, visitor, **options)
    else:
        work = partial(
            serve_http,
            Seats(connect, given.idle, keep=True),
            given.http,
            lambda url: context.output.result({"url": url}, url, url),
            needs_token=partial(_needs_token, context),
            insecure=given.insecure,
            idle_s=given.idle,
            **options,
        )
    run_interruptible(work, context.output, "the owner to be released")
    return 0


def _client(context: Context, visitor: "Visitor", *, own_token: bool) -> FabricClient:
    gateway = gateway_of(context)
    return FabricClient.connect(
        gateway,
        token=token_of(context, gateway) if own_token else visitor.token,
        tls=tls_of(context),
        agent=visitor.agent,
        mode=context.arguments.mode,
        keep=own_token and visitor.agent is not None,
    )


def _needs_token(context: Context) -> bool:
    """Tell whether this side knows of a token: then the gateway wants one from callers too."""
    try:
        return token_of(context, gateway_of(context)) is not None
    except FabricError:
        return True
