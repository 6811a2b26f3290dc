"""``fabric up``: a cluster, a gateway on it, and somebody who watches both.

The supervisor starts (or joins) the cluster, starts the gateway as a process of its own,
restarts it when it dies (with growing pauses, on the same port), and on the first
interrupt takes everything down in the reverse order and says what it waits for. A second
interrupt forces. It holds the lock of the state folder for as long as it lives.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from fabric.cli.announce import Announcer, announcements, error_from
from fabric.cli.clusters import Cluster
from fabric.cli.context import Context
from fabric.cli.state import Record, StateDir, start_time_of
from fabric.core.errors import FabricError, GatewayUnavailableError
from fabric.core.sources import DEFAULT_ORIGIN

T = TypeVar("T")
_LOCAL_PRINCIPAL = "local"
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 10.0
# A gateway that lived this long was well; its next death starts with a short pause again.
_WELL_AFTER_S = 30.0
_KILL_MARGIN_S = 5.0
_GATEWAY_START_S = 60.0


class Stopped(Exception):  # noqa: N818  (no error: somebody asked for it)
    """An interrupt or ``fabric down`` arrived."""


class GatewayProcess:
    """The gateway's process: one start, one end."""

    def __init__(self, process: asyncio.subprocess.Process, facts: dict[str, Any]) -> None:
        self.process = process
        self.address: str = facts["address"]
        self.metrics = str(facts.get("metrics", ""))
        self.began = time.monotonic()

    @classmethod
    async def start(
        cls, command: Sequence[str], log: Path, progress: Callable[[str], None]
    ) -> "GatewayProcess":
        """Start it and wait until it serves.

        Raises: the error it announced, GatewayUnavailableError.
        """
        reading, writing = os.pipe()
        process = None
        try:
            with log.open("ab") as stream:
                process = await asyncio.create_subprocess_exec(
                    *command, "--announce-fd", str(writing),
                    stdin=asyncio.subprocess.DEVNULL, stdout=stream, stderr=stream,
                    pass_fds=(writing,), start_new_session=True,
                )  # fmt: skip
            os.close(writing)
            writing = -1
            source, reading = reading, -1
            async with asyncio.timeout(_GATEWAY_START_S):
                facts = await _ready(source, progress)
            if facts is not None:
                return cls(process, facts)
            code = await process.wait()
            raise GatewayUnavailableError(
                f"the gateway ended while starting (code {code})", hint=f"look into {log}"
            )
        except BaseException:
            if process is not None and process.returncode is None:
                process.kill()
                await process.wait()
            raise
        finally:
            for descriptor in (reading, writing):
                if descriptor >= 0:
                    os.close(descriptor)

    async def stop(self, number: signal.Signals, limit_s: float) -> None:
        """Ask it to leave; kill it when it does not within ``limit_s``."""
        if self.process.returncode is not None:
            return
        self.process.send_signal(number)
        try:
            async with asyncio.timeout(limit_s + _KILL_MARGIN_S):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            await self.process.wait()


async def _ready(source: int, progress: Callable[[str], None]) -> dict[str, Any] | None:
    async with contextlib.aclosing(announcements(source)) as rows:  # type: ignore[type-var]
        async for row in rows:
            if "error" in row:
                raise error_from(row["error"])
            if "ready" in row:
                return dict(row["ready"])
            progress(str(row.get("progress", "")))
    return None


class Supervisor:
    """Everything ``fabric up`` started, from first to last."""

    def __init__(
        self,
        context: Context,
        cluster: Cluster,
        announcer: Announcer,
        serve: Sequence[str] = (sys.executable, "-m", "fabric.cli", "serve"),
    ) -> None:
        self._serve = serve
        self._context = context
        self._settings = context.loaded.settings
        self._state: StateDir = context.state
        self._cluster = cluster
        self._announcer = announcer
        self._gateway: GatewayProcess | None = None
        self._cluster_runs = True
        self._stop = asyncio.Event()
        self._listen = self._first_listen()
        self._started_at = time.time()
        self._principals = self._settings.gateway.token_file

    async def run(self) -> bool:
        """Run until stopped; False when that was before it was ready.

        Raises: FabricError when it could not start or not stop.
        """
        was_ready = False
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._interrupt)
        try:
            await self._start()
            was_ready = True
            await self._watch()
        except Stopped:
            pass
        except FabricError as error:
            self._announcer.failed(error)
            raise
        finally:
            await self._take_down()
        return was_ready

    def _interrupt(self) -> None:
        if self._stop.is_set():
            self._say("forced: killing what is left")
            if self._gateway is not None and self._gateway.process.returncode is None:
                self._gateway.process.kill()
            self._cluster.kill()
            os._exit(130)
        self._stop.set()

    def _say(self, text: str) -> None:
        self._context.output.progress(text)
        self._announcer.progress(text)

    async def _start(self) -> None:
        self._end_orphaned_gateway()
        self._state.write_record(self._record(""))
        await self._unless_stopped(self._cluster.start(self._say))
        if self._cluster.embedded and not self._principals:
            self._principals = str(self._state.new_token(_LOCAL_PRINCIPAL))
        self._say("starting the gateway")
        self._gateway = await self._unless_stopped(self._start_gateway())
        record = self._record(self._gateway.address)
        self._state.write_record(record)
        self._tell(record)
        self._announcer.ready(asdict(record))

    def _end_orphaned_gateway(self) -> None:
        """End the gateway of a supervisor that was killed; its port is wanted again."""
        left = self._state.record()
        if left is None or not left.gateway_pid:
            return
        if start_time_of(left.gateway_pid) == left.gateway_start_time:
            self._say("ending the gateway of a supervisor that is gone")
            with contextlib.suppress(ProcessLookupError):
                os.kill(left.gateway_pid, signal.SIGKILL)

    async def _start_gateway(self) -> GatewayProcess:
        command = [
            *self._serve,
            *self._context.own_flags(),
            "--set", f"cluster.address={self._cluster.address}",
            "--set", f"gateway.listen={self._listen}",
            "--set", f"gateway.token_file={self._principals}",
        ]  # fmt: skip
        gateway = await GatewayProcess.start(
            command, self._state.logs / "gateway.log", self._announcer.progress
        )
        self._listen = gateway.address
        return gateway

    async def _watch(self) -> None:
        """Keep a gateway, and an embedded cluster, running until stopped."""
        pause = _FIRST_PAUSE_S
        while True:
            if self._gateway is not None:
                began = self._gateway.began
                what = await self._unless_stopped(self._until_something_ends())
                if time.monotonic() - began >= _WELL_AFTER_S:
                    pause = _FIRST_PAUSE_S
                self._say(f"{what}; starting again in {pause:g} s")
            await self._unless_stopped(asyncio.sleep(pause))
            pause = min(pause * 2, _LONGEST_PAUSE_S)
            try:
                if not self._cluster_runs:
                    await self._unless_stopped(self._cluster.start(self._say))
                    self._cluster_runs = True
                self._gateway = await self._unless_stopped(self._start_gateway())
            except FabricError as error:
                self._say(f"it does not start: {error.message}")
                continue
            self._state.write_record(self._record(self._gateway.address))
            self._say(f"the gateway is back on {self._gateway.address}")

    async def _until_something_ends(self) -> str:
        """Wait for the end of the gateway or the cluster; without one there is no other."""
        gateway = self._gateway
        if gateway is None:
            return "there is no gateway"
        ended = asyncio.ensure_future(gateway.process.wait())
        lost = asyncio.ensure_future(self._cluster.lost())
        try:
            await asyncio.wait({ended, lost}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (ended, lost):
                task.cancel()
            await asyncio.gather(ended, lost, return_exceptions=True)
        self._gateway = None
        if gateway.process.returncode is not None:
            return f"the gateway ended (code {gateway.process.returncode})"
        self._cluster_runs = False
        await gateway.stop(signal.SIGKILL, 0)
        return "the cluster has died; its sessions are kept"

    async def _take_down(self) -> None:
        """Stop everything in the reverse order; the record goes last."""
        if self._gateway is not None:
            self._say("stopping: waiting for running calls and for the sessions to end")
            await self._stop_gateway(self._gateway)
        self._say("stopping: waiting for the cluster to end")
        await self._cluster.stop(self._say)
        if self._cluster.embedded:
            self._state.forget_owners()
        self._state.forget_token()
        self._state.forget_record()
        self._say("stopped")

    async def _stop_gateway(self, gateway: GatewayProcess) -> None:
        limit_s = self._settings.gateway.drain_s
        if not self._cluster.embedded:
            await gateway.stop(signal.SIGTERM, limit_s)
            return
        # Nothing of an embedded fabric stays: its owners end with their sessions first.
        limit_s += 2 * self._settings.registry.close_timeout_s
        await gateway.stop(signal.SIGUSR1, limit_s)

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """Await ``work``; an interrupt cancels it. Raises: Stopped."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise Stopped
        finally:
            stop.cancel()
            task.cancel()

    def _first_listen(self) -> str:
        """Keep two fabrics on one machine apart: an embedded one takes any free port by default."""
        default = self._context.loaded.origins["gateway.listen"] == DEFAULT_ORIGIN
        if default and self._cluster.embedded:
            return f"{self._settings.gateway.listen.rpartition(':')[0]}:0"
        return self._settings.gateway.listen

    def _record(self, gateway: str) -> Record:
        process = self._gateway.process.pid if self._gateway else 0
        return Record(
            pid=os.getpid(),
            start_time=start_time_of(os.getpid()),
            gateway=gateway,
            cluster=self._cluster.address,
            embedded=self._cluster.embedded,
            started_at=self._started_at,
            version=metadata.version("pty-fabric"),
            gateway_pid=process,
            gateway_start_time=start_time_of(process) if process else 0,
            metrics=self._gateway.metrics if self._gateway else "",
        )

    def _tell(self, record: Record) -> None:
        note = self._context.output.note
        config = self._context.loaded.config_file
        note(f"settings: {config or 'defaults, environment and flags (no config file)'}")
        note(f"cluster:  {record.cluster}" + (" (embedded)" if record.embedded else ""))
        note(f"gateway:  {record.gateway}")
        note("reach it: fabric open; from elsewhere on this machine:")
        note(f"          export FABRIC_GATEWAY={record.gateway}")
        if self._state.token_file.exists():
            note(f"          export FABRIC_TOKEN_FILE={self._state.token_file}")
        note("stop it:  Ctrl-C here, or fabric down")
        self._context.output.result(record, f"ready on {record.gateway}", record.gateway)
