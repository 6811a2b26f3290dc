"""From what was asked for to a running session, and from a live shim back to one.

An open either publishes a session whose program waits for input, or leaves nothing
behind: every failure and every cancellation tears the half-made session down before it
is reported.
"""

import asyncio
import contextlib
import json
import logging
import os
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fabric.core.clock import Clock
from fabric.core.errors import (
    FabricError,
    SessionLostError,
    SpawnFailedError,
    StaleGenerationError,
    StartupTimeoutError,
)
from fabric.core.ids import new_request_id
from fabric.core.model import (
    Confinement,
    OpenResult,
    OpenSpec,
    SandboxMode,
    SendRequest,
    SendResult,
    WaitReason,
)
from fabric.core.plain import from_plain, to_plain
from fabric.core.settings import WorkerSettings
from workers.ledger import Ledger
from workers.prepare import prepare
from workers.readiness.choose import inspector_for
from workers.sandbox import confine, probe
from workers.sandbox.limits import SessionCgroup
from workers.sandbox.probe import NodeConfinement
from workers.session import Parts, Session
from workers.shared_settings import settings_for
from workers.shim.client import ShimClient, Spawned, SpawnRequest
from workers.slot import SlotConfig
from workers.terminal.dialects import Dialect, dialect_for
from workers.terminal.master import Master
from workers.text.bytelog import ByteLog, cursor_memory, ledger_memory, shim_bytes
from workers.text.cursors import Cursors

STARTUP_TAIL_CHARS = 400
COMMAND_LEAST_S = 0.1
UMASK = 0o022
_log = logging.getLogger(__name__)
Notify = Callable[[str, dict[str, Any]], None]
_notes: set[asyncio.Task[None]] = set()


@dataclass(frozen=True, slots=True)
class _Labels:
    """What the shim keeps for whoever adopts the session."""

    spec: OpenSpec
    nonce: str
    confinement: Confinement
    cwd: str
    cgroup: str | None = None
    shell_pgid: int | None = None

    def dump(self) -> bytes:
        return json.dumps(to_plain(self)).encode()

    @staticmethod
    def load(raw: bytes) -> "_Labels":
        return from_plain(_Labels, json.loads(raw))


async def open_session(
    spec: OpenSpec,
    slot: SlotConfig,
    shim: ShimClient,
    settings: WorkerSettings,
    clock: Clock,
    notify: Notify,
    publish: Callable[[Session], None],
    confinement: NodeConfinement | None = None,
) -> OpenResult:
    """Start a session and wait until it is ready.

    Raises: SpawnFailedError, StartupTimeoutError, SandboxUnavailableError,
    PtyExhaustedError, InvalidRequestError.
    """
    settings = settings_for(spec, settings)
    session: Session | None = None
    try:
        session, labels = await _spawn(spec, slot, shim, settings, clock, notify, confinement)
        session.start()
        publish(session)
        deadline = clock.monotonic() + _startup_s(spec, settings)
        result = await _become_ready(session, spec)
        _note_shell(session, labels)
        ran = None
        if spec.command is not None:
            ran = await _run_command(session, spec.command, deadline)
    except BaseException:
        await asyncio.shield(_roll_back(session, shim, settings))
        raise
    session.parts.cursors.first_line = session.transcript.next_line
    last = result if ran is None else ran
    return OpenResult(
        info=session.info(),
        motd=result.viewport + ("" if ran is None else ran.viewport),
        wait_reason=last.wait_reason,
        truncated=result.truncated or last.truncated,
        next_offset=last.next_offset,
    )


def _note_shell(session: Session, labels: _Labels) -> None:
    """Let the shim keep which group the shell has, where it is not the top-level process's."""
    group = session.sending.memory.shell_pgid
    if group in (None, session.parts.spawned.pid):
        return

    async def note() -> None:
        with contextlib.suppress(FabricError):  # without the shim nobody adopts anything
            await session.parts.shim.set_labels(replace(labels, shell_pgid=group).dump())

    task = asyncio.get_running_loop().create_task(note())
    _notes.add(task)
    task.add_done_callback(_notes.discard)


def adopt(
    spawned: Spawned, shim: ShimClient, settings: WorkerSettings, clock: Clock, notify: Notify
) -> Session:
    """Take over the session that a shim kept. Raises: ValueError for labels not ours."""
    labels = _Labels.load(spawned.labels)
    settings = settings_for(labels.spec, settings)
    dialect = dialect_for(labels.spec, settings.shell, labels.nonce, _args(labels.spec, settings))
    parts = _parts(spawned, shim, dialect, labels, settings)
    session = Session(labels.spec, parts, settings, clock, notify)
    session.sending.memory.shell_pgid = labels.shell_pgid
    return session


async def _spawn(
    spec: OpenSpec,
    slot: SlotConfig,
    shim: ShimClient,
    settings: WorkerSettings,
    clock: Clock,
    notify: Notify,
    confinement: NodeConfinement | None,
) -> tuple[Session, _Labels]:
    nonce = secrets.token_hex(8)
    dialect = dialect_for(spec, settings.shell, nonce, _args(spec, settings))
    node = confinement or await _probed(spec, settings)
    prepared = prepare(spec, dialect, settings.sandbox, node, slot)
    launch, cgroup = prepared.launch, prepared.cgroup
    folder = str(cgroup.folder) if cgroup else None
    labels = _Labels(spec, nonce, launch.confinement, prepared.cwd, folder)
    request = SpawnRequest(
        argv=launch.argv,
        env=launch.env,
        cwd=prepared.cwd,
        rows=spec.rows,
        cols=spec.cols,
        log_bytes=shim_bytes(settings.scrollback.bytelog_bytes),
        labels=labels.dump(),
        umask=UMASK,
        run_as=prepared.run_as,
        rlimits=prepared.rlimits,
        landlock=launch.landlock,
        wrappers=("bwrap",) if launch.confinement.kind == confine.BUBBLEWRAP else (),
        grace_s=settings.teardown.grace_s,
        shell_grace_s=settings.teardown.shell_grace_s,
    )
    try:
        spawned = await shim.spawn(request)
    except BaseException:
        if cgroup is not None:
            cgroup.remove()
        raise
    parts = _parts(spawned, shim, dialect, labels, settings)
    return Session(spec, parts, settings, clock, notify), labels


def _args(spec: OpenSpec, settings: WorkerSettings) -> tuple[str, ...] | None:
    return None if spec.shared is None else settings.shared.shell_args


async def _probed(spec: OpenSpec, settings: WorkerSettings) -> NodeConfinement:
    if spec.mode is SandboxMode.DANGER_FULL_ACCESS:
        return NodeConfinement(host="", system=sys.platform, machine="")
    return await probe.probe(settings.sandbox)


def _parts(
    spawned: Spawned,
    shim: ShimClient,
    dialect: Dialect,
    labels: _Labels,
    settings: WorkerSettings,
) -> Parts:
    master = Master(spawned.master_fd)
    try:
        log = ByteLog(spawned.log_fd, settings.scrollback.bytelog_bytes)
    finally:
        os.close(spawned.log_fd)  # the mapping keeps the memory
    return Parts(
        shim=shim,
        spawned=spawned,
        master=master,
        inspector=inspector_for(
            master, root_pid=spawned.pid, shim_pid=shim.shim_pid, exact=settings.readiness.exact
        ),
        log=log,
        cursors=Cursors(cursor_memory(log)),
        ledger=Ledger(ledger_memory(log)),
        dialect=dialect,
        nonce=labels.nonce,
        confinement=labels.confinement,
        cwd=labels.cwd,
        cgroup=None if labels.cgroup is None else SessionCgroup(Path(labels.cgroup)),
    )


async def _become_ready(session: Session, spec: OpenSpec) -> SendResult:
    request = SendRequest(
        request_id=new_request_id(),
        data=b"",
        submit=False,
        timeout_s=_startup_s(spec, session.settings),
    )
    run = session.sending.begin(request, startup=True)
    result = await run.done
    if result.wait_reason is WaitReason.SESSION_EXIT:
        end = result.status.exit
        what = spec.type if spec.shared is None else "terminal"
        raise SpawnFailedError(
            f"{what} exited during startup: {result.viewport[-STARTUP_TAIL_CHARS:].strip()}",
            exit_code=end.exit_code if end else None,
            signal=end.signal if end else None,
        )
    if result.wait_reason is WaitReason.TIMEOUT:
        text = f"{spec.type} did not reach readiness before the startup timeout; it was removed"
        if spec.shared is not None:
            text = "terminal startup timed out before controlled prompt"
        raise StartupTimeoutError(text)
    return result


def _startup_s(spec: OpenSpec, settings: WorkerSettings) -> float:
    return spec.startup_timeout_s or settings.readiness.startup_timeout_s


async def _run_command(session: Session, command: str, deadline: float) -> SendResult:
    """Type the command of an open and watch it until a verdict, whichever it is.

    It has what start-up left of its time. A program that is still busy then, or that has
    ended the session already, is no failure of the open: the status says so.
    """
    left = deadline - session.clock.monotonic()
    request = SendRequest(
        request_id=new_request_id(),
        data=command.encode(),
        timeout_s=min(session.settings.readiness.timeout_s, max(left, COMMAND_LEAST_S)),
    )
    return await session.sending.begin(request).done


async def _roll_back(session: Session | None, shim: ShimClient, settings: WorkerSettings) -> None:
    try:
        if session is not None:
            await session.close("startup failed")
            session.abandon()
        else:
            await shim.teardown(
                grace_s=settings.teardown.grace_s, shell_grace_s=settings.teardown.shell_grace_s
            )
    except (SessionLostError, StaleGenerationError):
        # The node ends a slot whose open was cancelled, and may have been quicker.
        _log.info("the slot was ended while its open was rolled back")
    except FabricError:
        _log.exception("rolling back an open failed")
        raise
