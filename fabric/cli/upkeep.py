"""``fabric drain`` and ``fabric upgrade``: for the operator of a cluster, on one of its machines.

Both join the cluster as a driver does: whoever may do that may do anything to the fabric,
and no gateway is asked.
"""

import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from fabric.cli.context import Context, run_interruptible
from fabric.cli.state import Record, start_time_of
from fabric.core.errors import InvalidRequestError, StartupTimeoutError
from fabric.core.ids import HostName

if TYPE_CHECKING:
    from fabric.actors.upkeep import Upkeep

T = TypeVar("T")
POLL_S = 0.1
LEFT = 9


def drain(context: Context) -> int:
    """Drain a node, or undo it; exit code 9 when sessions are left on it."""
    arguments = context.arguments
    host = HostName(arguments.node)
    if arguments.undo:
        _with(context, lambda upkeep: upkeep.resume(host), "the node")
        context.output.result({"node": host, "draining": False}, f"{host} takes sessions again", "")
        return 0
    left = _with(
        context,
        lambda upkeep: upkeep.drain(host, arguments.limit, close=arguments.close),
        "the node",
    )
    text = f"{host} is drained" if not left else f"{host} still has {len(left)} sessions"
    context.output.result({"node": host, "draining": True, "left": list(left)}, text, "")
    return LEFT if left else 0


def upgrade(context: Context) -> int:
    """Restart what runs with the code that is installed now."""
    done = _with(
        context, lambda upkeep: upkeep.upgrade(context.arguments.limit), "the step that is begun"
    )
    gateway = _renew_gateway(context)
    text = (
        f"restarted {', '.join(done.restarted)}, the workers of {len(done.sessions)} sessions"
        + (f" and the gateway on {gateway}" if gateway else "")
        + (f"; busy and left as they are: {', '.join(done.busy)}" if done.busy else "")
    )
    row = {
        "restarted": done.restarted,
        "sessions": list(done.sessions),
        "busy": list(done.busy),
        "gateway": gateway,
    }
    context.output.result(row, text, "")
    return LEFT if done.busy else 0


def _with(context: Context, work: "Callable[[Upkeep], Awaitable[T]]", waiting_for: str) -> T:
    from fabric.actors import rayenv
    from fabric.actors.upkeep import Upkeep

    settings, state = context.loaded.settings, context.state
    record = state.record() if state.is_up() else None
    address = settings.cluster.address or (record.cluster if record else "")
    if not address:
        raise InvalidRequestError(
            f"no fabric of {state.folder} is up here", hint="--set cluster.address=host:port"
        )
    token = state.folder / "ray.token"
    rayenv.join(settings.cluster, address, token_file=str(token) if token.exists() else "")
    try:

        async def run() -> T:
            return await work(Upkeep(settings, context.output.progress))

        return run_interruptible(run, context.output, waiting_for)
    finally:
        rayenv.leave()


def _renew_gateway(context: Context) -> str:
    """Let the gateway of this machine leave; its supervisor starts it again on its port."""
    record = context.state.record()
    if record is None or start_time_of(record.gateway_pid) != record.gateway_start_time:
        return ""
    context.output.progress("restarting the gateway, once its calls have ended")
    os.kill(record.gateway_pid, signal.SIGTERM)
    settings = context.loaded.settings
    deadline = time.monotonic() + settings.gateway.drain_s + settings.cluster.start_timeout_s
    while time.monotonic() < deadline:
        now: Record | None = context.state.record()
        if now is not None and now.gateway_pid not in (0, record.gateway_pid):
            return now.gateway
        time.sleep(POLL_S)
    raise StartupTimeoutError("the gateway did not come back", log=context.state.logs)
