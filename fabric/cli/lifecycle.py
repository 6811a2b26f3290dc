"""The commands about a fabric as a whole: up, down, status."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from fabric.cli.announce import Announcer, announcements, error_from
from fabric.cli.clusters import Cluster
from fabric.cli.context import INTERRUPTED, Context, run_interruptible
from fabric.cli.output import Output
from fabric.cli.state import Record, StateDir, start_time_of
from fabric.cli.supervisor import Supervisor
from fabric.core.errors import CancelledCallError, FabricError, InternalError
from fabric.core.neighbours import refuse_the_ssh_library

_POLL_S = 0.05
_SAY_AGAIN_S = 5.0
# Longer than any graceful end the supervisor allows itself; then it is forced, once.
_DOWN_MARGIN_S = 60.0
_FORCED_S = 10.0


def refusal(reason: str, message: str, exit_code: int, **metadata: object) -> FabricError:
    """Make an error that only the command line knows."""
    error = FabricError(message, **metadata)
    error.__dict__.update(reason=reason, exit_code=exit_code)
    return error


def up(context: Context) -> int:
    """Start a fabric and stay with it, or with ``--detach`` return when it is ready."""
    refuse_the_ssh_library()
    _refuse_an_open_door(context)
    state = context.state.prepare()
    if state.is_up():
        raise _already_up(state)
    if context.arguments.detach:
        return _up_detached(context, state)
    announcer = Announcer(context.arguments.announce_fd)
    with state.holding(state.lock_file, wait=False) as held:
        if not held:
            raise _already_up(state)
        settings = context.loaded.settings
        cluster = Cluster(settings, state, embedded=not settings.cluster.address)
        if not asyncio.run(Supervisor(context, cluster, announcer).run()):
            raise KeyboardInterrupt  # what was asked for, a fabric that runs, never came
    return 0


def _refuse_an_open_door(context: Context) -> None:
    """Say before the cluster starts what the gateway would say after it. Raises: SettingsError."""
    from fabric.gateway.auth import check_listener

    settings = context.loaded.settings
    gateway = settings.gateway
    if not settings.cluster.address and not gateway.token_file:
        # An embedded fabric gets a token of its own.
        gateway = replace(gateway, token_file=str(context.state.principals_file))
    check_listener(gateway)


def _already_up(state: StateDir) -> FabricError:
    record = state.record()
    if record is None or not record.gateway:
        pid = f" (pid {record.pid})" if record else ""
        return refusal(
            "ALREADY_UP",
            f"a fabric of {state.folder} is just starting or ending{pid}",
            5,
            hint="fabric status; try again",
        )
    where = f"{record.gateway} (pid {record.pid})"
    return refusal("ALREADY_UP", f"a fabric of {state.folder} is up already on {where}", 5)


def _up_detached(context: Context, state: StateDir) -> int:
    reading, writing = os.pipe()
    log = state.logs / "up.log"
    with log.open("ab") as stream:
        process = subprocess.Popen(
            [
                sys.executable, "-m", "fabric.cli", "up", *context.own_flags(),
                "--announce-fd", str(writing),
            ],
            stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
            pass_fds=(writing,), start_new_session=True,
        )  # fmt: skip
    os.close(writing)
    try:
        record = run_interruptible(
            lambda: _await_ready(reading, context.output), context.output, "the start to end"
        )
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    except FabricError:
        process.wait()  # it takes down what it had started; only then the folder is free again
        raise
    if record is None:
        code = process.wait()
        if code == INTERRUPTED:
            raise CancelledCallError("it was told to stop before it was ready", hint="fabric up")
        raise InternalError(f"the supervisor ended while starting (code {code})", hint=str(log))
    context.output.note(f"gateway:  {record.gateway}")
    context.output.note("stop it:  fabric down")
    context.output.result(record, f"ready on {record.gateway}", record.gateway)
    # It lives on by itself; we are not its waiter any more.
    process.returncode = 0
    return 0


async def _await_ready(descriptor: int, output: Output) -> Record | None:
    rows = announcements(descriptor)
    async with contextlib.aclosing(rows):  # type: ignore[type-var]
        async for row in rows:
            if "progress" in row:
                output.progress(str(row["progress"]))
            elif "ready" in row:
                return Record(**row["ready"])
            elif "error" in row:
                raise error_from(row["error"])
    return None


def down(context: Context) -> int:
    """Stop the fabric of the state folder; nothing to stop is fine."""
    state, output = context.state, context.output
    if not state.folder.is_dir():
        return _nothing_up(output, state)
    record = state.record()
    if not state.is_up():
        if record is None:
            return _nothing_up(output, state)
        output.progress("its supervisor is gone; ending what it left behind")
        _end_leftovers(context, record)
        state.forget_record()
        state.forget_owners()
        output.result({"stopped": True, "leftovers": True}, "stopped what was left behind", "")
        return 0
    if record is None or start_time_of(record.pid) != record.start_time:
        raise refusal("NOT_STOPPED", f"the fabric of {state.folder} is just starting or ending", 9)
    _stop_supervisor(context, state, record)
    output.result({"stopped": True, "leftovers": False}, "stopped", "")
    return 0


def _nothing_up(output: Output, state: StateDir) -> int:
    output.result({"stopped": False}, f"no fabric of {state.folder} is up", "")
    return 0


def _stop_supervisor(context: Context, state: StateDir, record: Record) -> None:
    output = context.output
    output.progress("stopping: waiting for the sessions and the cluster to end")
    settings = context.loaded.settings
    limit = settings.gateway.drain_s + settings.registry.close_timeout_s + _DOWN_MARGIN_S
    os.kill(record.pid, signal.SIGTERM)
    if _gone(output, state, record, limit):
        return
    output.progress("it does not end; forcing")
    with contextlib.suppress(ProcessLookupError):
        os.kill(record.pid, signal.SIGTERM)
    if not _gone(output, state, record, _FORCED_S):
        raise refusal("NOT_STOPPED", f"the supervisor (pid {record.pid}) does not end", 9)
    _end_leftovers(context, record)
    state.forget_record()


def _gone(output: Output, state: StateDir, record: Record, limit_s: float) -> bool:
    began = said = time.monotonic()
    while state.is_up() or start_time_of(record.pid) == record.start_time:
        now = time.monotonic()
        if now - began > limit_s:
            return False
        if now - said > _SAY_AGAIN_S:
            said = now
            output.progress("still waiting")
        time.sleep(_POLL_S)
    return True


def _end_leftovers(context: Context, record: Record) -> None:
    """End what a supervisor that was killed could not."""
    gateway = record.gateway_pid
    if gateway and start_time_of(gateway) == record.gateway_start_time:
        with contextlib.suppress(ProcessLookupError):
            os.kill(gateway, signal.SIGKILL)
    cluster = Cluster(context.loaded.settings, context.state, embedded=record.embedded)
    asyncio.run(cluster.stop(context.output.progress))


def status(context: Context) -> int:
    """Say what runs here and how to reach it; exit code 7 when nothing does."""
    state = context.state
    record = state.record() if state.folder.is_dir() and state.is_up() else None
    if record is None:
        context.output.result(
            {"running": False, "state_dir": str(state.folder)},
            f"no fabric of {state.folder} is up",
            "",
        )
        return 7
    row = {"running": True, "ready": bool(record.gateway), "state_dir": str(state.folder)}
    uptime = time.time() - record.started_at
    text = "\n".join(
        [
            f"up for {uptime:.0f} s (pid {record.pid}), version {record.version}",
            f"gateway: {record.gateway or 'starting'}",
            f"cluster: {record.cluster or 'starting'}{' (embedded)' if record.embedded else ''}",
            f"state:   {state.folder}",
            f"metrics: {f'http://{record.metrics}/metrics' if record.metrics else 'off'}",
            f"logs:    {Path(state.logs)}",
        ]
    )
    context.output.result(row | asdict(record), text, record.gateway)
    return 0
