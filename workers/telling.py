"""Whose call this is, for the log and the trace of the worker that serves it.

Called once for each call of the session channel, inside its task, so that everything that
is logged below says it. Half a microsecond; a span only where somebody traces.
"""

from typing import Any

from fabric.core import log, tracing


def begin(
    tracer: tracing.Tracer | None, host: str, method: str, args: dict[str, Any]
) -> tracing.Span | None:
    """Take the ids of a call over; return its span if it belongs to a trace."""
    request, caller = args.get("request"), args.get("caller")
    request_id = args.get("request_id") or (request and request.get("request_id"))
    if request_id:
        log.request_id.set(request_id)
    if caller:
        log.owner.set(caller["owner_id"])
    session_id = args.get("session_id")
    if session_id:
        log.session.set(session_id)
    parent = args.get(tracing.KEY)
    if tracer is None or parent is None:
        return None
    facts = {"fabric.host": host, "fabric.session": session_id or ""}
    if caller:
        facts["fabric.owner"] = caller["owner_id"]
    return tracer.begin(f"SessionWorker.{method}", parent, facts)
