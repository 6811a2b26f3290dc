"""Find out by trying what this node can confine with.

Each candidate is run through the very plan a session would get, on a small command that tries
to write where it must not: only a sandbox that starts *and* holds counts. The verdict, good or
bad, is kept for the life of the process; it does not change without a change of the machine.
"""

import asyncio
import base64
import functools
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from fabric.core.errors import FabricError
from fabric.core.model import Network, SandboxMode
from fabric.core.settings import SandboxSettings
from workers.sandbox import bubblewrap, landlock, limits, seatbelt, seccomp
from workers.sandbox.policy import ResolvedPolicy, folder_at
from workers.shim import confine as applier

NOBODY = 65534
_CAP_SYS_ADMIN = 21
_one_at_a_time = threading.Lock()
# Prints "held" when the write is refused and the service's process is out of reach: in another
# PID namespace under bubblewrap, out of the scope of signals under Landlock.
_TRIAL = (
    'if (: > "$1/x") 2>/dev/null; then echo open; '
    'elif [ "$3" = "$(readlink /proc/self/ns/pid)" ] && kill -0 "$2" 2>/dev/null; '
    "then echo seen; else echo held; fi"
)


@dataclass(frozen=True, slots=True)
class NodeConfinement:
    """What a node can confine with. Plain data: it travels to the workers as it is.

    ``bubblewrap`` is the program that works for the service's own uid, and
    ``bubblewrap_switched`` the one for sessions under another uid. ``filtered`` says that
    system call filters work, ``can_mount`` that the service may make mounts (root with
    ``CAP_SYS_ADMIN``), ``can_switch`` that it may start sessions under other accounts.
    ``cgroup`` is the folder that it may divide among its sessions, with its controllers.
    ``failure`` says why the first choice does not work.
    """

    host: str
    system: str
    machine: str
    bubblewrap: str | None = None
    bubblewrap_switched: str | None = None
    bubblewrap_network: bool = False
    landlock_abi: int = 0
    filtered: bool = False
    can_mount: bool = False
    seatbelt: bool = False
    can_switch: bool = False
    cgroup: str | None = None
    controllers: tuple[str, ...] = ()
    failure: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """List what the node advertises: its sandboxes, best first, then what else it can meet.

        ``network-none``: sessions without a network. ``run-as``: accounts of their own.
        ``cgroup``: limits for a whole session. No sandbox means no confined mode.
        """
        found: list[str] = []
        if self.bubblewrap:
            found.append("bubblewrap")
        if self.landlock_abi:
            found.append("landlock")
        if self.seatbelt:
            found.append("seatbelt")
        network = (self.bubblewrap and self.bubblewrap_network) or self.seatbelt
        if network or (self.landlock_abi and self.filtered):
            found.append("network-none")
        if self.can_switch:
            found.append("run-as")
        if self.cgroup:
            found.append("cgroup")
        return tuple(found)

    @property
    def summary(self) -> str:
        """Say in a line what confines sessions here, for a log."""
        if self.bubblewrap:
            return "bubblewrap, full"
        if self.landlock_abi:
            full = self.filtered and self.landlock_abi >= landlock.FULL_ABI
            read_only = "full" if full else "partial"
            return f"landlock ABI {self.landlock_abi}, read-only {read_only}, workspace partial"
        return "seatbelt, full" if self.seatbelt else f"none: {self.failure}"


async def probe(settings: SandboxSettings, host: str = "") -> NodeConfinement:
    """Try every sandbox of this platform once; later calls get the kept verdict."""
    return await asyncio.to_thread(probe_now, settings, host)


def probe_now(settings: SandboxSettings, host: str = "") -> NodeConfinement:
    """Do what ``probe`` does and block, up to ``probe_timeout_s`` for each trial."""
    with _one_at_a_time:
        return _verdict(settings.probe_timeout_s, host)


@functools.lru_cache(maxsize=8)
def _verdict(timeout_s: float, host: str) -> NodeConfinement:
    divided = limits.detect()
    node = NodeConfinement(
        host or socket.gethostname(),
        sys.platform,
        platform.machine(),
        can_switch=os.geteuid() == 0,
        cgroup=str(divided.base) if divided else None,
        controllers=tuple(sorted(divided.controllers)) if divided else (),
    )
    if node.system == "darwin":
        usable = os.access(seatbelt.PROGRAM, os.X_OK)
        return replace(node, seatbelt=usable, failure="" if usable else "no sandbox-exec")
    if node.system != "linux":
        return replace(node, failure=f"no sandbox is known for {node.system}")
    folder = Path(tempfile.mkdtemp(prefix="fabric-probe-", dir="/var/tmp"))
    try:
        folder.chmod(0o777)
        return _Trials(node, folder, timeout_s).verdict()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Trials:
    def __init__(self, node: NodeConfinement, folder: Path, timeout_s: float) -> None:
        self._node, self._folder, self._timeout_s = node, folder, timeout_s

    def verdict(self) -> NodeConfinement:
        node = replace(self._node, filtered=self._filters_work(), can_mount=_can_mount())
        abi = landlock.kernel_abi()
        failures: list[str] = []
        binary = self._first_working(replace(node, landlock_abi=abi), failures)
        tried = replace(node, landlock_abi=abi, bubblewrap=binary)
        if abi and self._trial(replace(tried, bubblewrap=None)) is not None:
            tried = replace(tried, landlock_abi=0)
        if tried.bubblewrap:
            network = self._trial(replace(tried, bubblewrap_network=True), network=Network.NONE)
            tried = replace(tried, bubblewrap_network=network is None)
            tried = replace(tried, bubblewrap_switched=self._switched(tried))
        failure = "; ".join(failures) if not tried.bubblewrap else ""
        return replace(tried, failure=failure)

    def _filters_work(self) -> bool:
        """Try the filter by itself, so that no other failure is taken for its own."""
        from workers.sandbox import confine

        machine = self._node.machine
        if not seccomp.is_supported(machine):
            return False
        program = seccomp.program(machine, seccomp.common_rules(), companion=True)
        steps = {"no_new_privs": True, "seccomp": base64.b64encode(program).decode("ascii")}
        command = applier.command(confine.serialise(steps), ("/bin/sh", "-c", ":"))
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._timeout_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0

    def _first_working(self, node: NodeConfinement, failures: list[str]) -> str | None:
        found = bubblewrap.binaries()
        if not found:
            failures.append("no bubblewrap program")
        for binary in found:
            failure = self._trial(replace(node, bubblewrap=binary))
            if failure is None:
                return binary
            failures.append(f"{binary}: {failure}")
        return None

    def _switched(self, node: NodeConfinement) -> str | None:
        """Find the program that works for another uid, where the service may switch at all."""
        if os.geteuid() != 0:
            return None
        for binary in bubblewrap.binaries():
            if self._trial(replace(node, bubblewrap_switched=binary), switch=True) is None:
                return binary
        return None

    def _trial(
        self, node: NodeConfinement, *, network: Network = Network.SHARED, switch: bool = False
    ) -> str | None:
        """Run one trial; None when the sandbox held, else what went wrong."""
        from workers.sandbox import confine  # it imports this module's words

        workspace = folder_at("/")
        if workspace is None:
            return "no root folder"
        run_as = str(NOBODY) if switch else None
        policy = ResolvedPolicy(SandboxMode.READ_ONLY, network, workspace, "/", run_as)
        outside = (str(os.getpid()), str(Path("/proc/self/ns/pid").readlink()))
        argv = ("/bin/sh", "-c", _TRIAL, "sh", str(self._folder), *outside)
        try:
            launch = confine.plan(policy, argv, {"PATH": "/usr/bin:/bin"}, node, ())
        except FabricError as error:
            return error.message
        if launch.landlock is None:
            return "no plan"
        command = applier.command(
            launch.landlock, launch.argv, (NOBODY, NOBODY) if switch else None
        )
        try:
            done = subprocess.run(
                command, env=launch.env, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=self._timeout_s, check=False, cwd="/",
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"trial failed: {type(error).__name__}"
        # With an old Landlock outside processes stay in sight: partial, but it confines.
        accepted = {b"held"} if node.bubblewrap or node.landlock_abi >= landlock.FULL_ABI else {
            b"held", b"seen"
        }  # fmt: skip
        if done.returncode == 0 and done.stdout.strip() in accepted:
            return None
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else f"trial ended {done.returncode}"


def _can_mount() -> bool:
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_SYS_ADMIN & 1)
    return False
