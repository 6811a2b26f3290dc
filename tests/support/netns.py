"""Hosts of their own on one machine: a network, a process and a mount namespace each.

They hang on a bridge that has a namespace of its own too, so nothing of this machine's
network is touched, and packets go nowhere else. Killing a host's first process is a power
cut: everything on it goes with it. Each host sees its own folder at the same path, as
machines do. Linux, root.

    with Net(("h1", "h2", "h3")) as net:
        net["h1"].run("fabric", "up", ...)
        net["h3"].cut(); net["h3"].heal(); net["h2"].power_off()
"""

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.eventually import eventually_sync
from tests.support.paths import ROOT

SUBNET = "10.213.77"
LIMIT_S = 120.0
# The first process of a host: it only collects what dies there.
_INIT = """
mount --bind "$1" "$2" && mount -t tmpfs -o size=512m none /dev/shm && hostname "$3" || exit 1
# Ray looks names up; without a name server in reach each look-up would take seconds.
mount --bind "$2.hosts" /etc/hosts && mount --bind /dev/null /etc/resolv.conf || exit 1
echo up > "$1/host.up"
while :; do sleep 3600 & wait $!; done
"""
_FORWARDER = """
import asyncio, sys
path, host, port = sys.argv[1:]
async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
async def link(reader, writer):
    try:
        far = await asyncio.open_connection(host, int(port))
    except OSError:
        writer.close()
        return
    await asyncio.gather(pump(reader, far[1]), pump(far[0], writer), return_exceptions=True)
async def main():
    server = await asyncio.start_unix_server(link, path)
    await server.serve_forever()
asyncio.run(main())
"""


def why_not() -> str:
    """Say why hosts cannot be made here; "" when they can."""
    if sys.platform != "linux":
        return "network namespaces are Linux's"
    if os.geteuid() != 0:
        return "making network namespaces needs root"
    missing = [name for name in ("ip", "unshare", "nsenter") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not installed (iproute2, util-linux)"
    name = f"pf{secrets.token_hex(3)}"
    made = _run("ip", "netns", "add", name, check=False)
    if made.returncode:
        return f"no network namespaces here: {made.stderr.strip()}"
    steps = (
        ("ip", "-n", name, "link", "add", "b0", "type", "bridge"),
        ("ip", "-n", name, "link", "add", "v0", "type", "veth", "peer", "name", "v1"),
        ("ip", "netns", "exec", name, "unshare", "-m", "-p", "-u", "-f", "--mount-proc", "true"),
    )
    try:
        for step in steps:
            done = _run(*step, check=False)
            if done.returncode:
                return f"{' '.join(step)}: {done.stderr.strip()}"
    finally:
        _run("ip", "netns", "del", name, check=False)
    return ""


def _run(*argv: str, check: bool = True, **options: Any) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=LIMIT_S, check=False, **options
    )
    if check and done.returncode:
        raise AssertionError(f"{' '.join(argv)}: {done.stdout}{done.stderr}")
    return done


class Host:
    """One machine of the net. ``state`` is its folder as seen from outside."""

    def __init__(self, net: "Net", name: str, number: int) -> None:
        self.name = name
        self.ip = f"{SUBNET}.{number}"
        self.state = net.folder / name
        self._net = net
        self._netns = f"{net.mark}-{name}"
        self._port = f"p{number}"
        self._init: subprocess.Popen[bytes] | None = None
        self._helpers: list[subprocess.Popen[bytes]] = []

    def plug_in(self) -> None:
        """Make the host's network and connect it with the bridge."""
        ns, switch = self._netns, self._net.switch
        _run("ip", "netns", "add", ns)
        _run(
            "ip",
            "-n",
            switch,
            "link",
            "add",
            self._port,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            ns,
        )
        _run("ip", "-n", switch, "link", "set", self._port, "master", "b0", "up")
        _run("ip", "-n", ns, "addr", "add", f"{self.ip}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            _run("ip", "-n", ns, "link", "set", link, "up")

    def power_on(self) -> None:
        """Start the host's first process."""
        self.state.mkdir(exist_ok=True, mode=0o700)
        up = self.state / "host.up"
        up.unlink(missing_ok=True)
        argv = [
            "unshare",
            "-m",
            "-p",
            "-u",
            "-f",
            "--mount-proc",
            "--kill-child",
            "bash",
            "-c",
            _INIT,
        ]
        self._init = subprocess.Popen(
            [
                "ip",
                "netns",
                "exec",
                self._netns,
                *argv,
                "init",
                self.state,
                self._net.state,
                self.name,
            ],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        eventually_sync(up.exists, within=10, what=f"{self.name} is up")

    @property
    def first_pid(self) -> int:
        """The host's process 1, by its pid out here. `ip netns exec` becomes unshare itself."""
        assert self._init is not None, "the host is off"
        children = Path(f"/proc/{self._init.pid}/task/{self._init.pid}/children").read_text()
        return int(children.split()[0])

    def power_off(self) -> None:
        """Kill everything on the host at once."""
        if self._init is None:
            return
        with contextlib.suppress(OSError, IndexError):
            os.kill(self.first_pid, signal.SIGKILL)
        self._init.kill()
        self._init.wait()
        self._init = None
        for helper in self._helpers:
            helper.kill()
            helper.wait()
        self._helpers.clear()

    def cut(self) -> None:
        """Take the cable out at the switch: the host keeps its address and hears nothing."""
        _run("ip", "-n", self._net.switch, "link", "set", self._port, "down")

    def heal(self) -> None:
        """Put the cable in again."""
        _run("ip", "-n", self._net.switch, "link", "set", self._port, "up")

    def inside(self, *argv: str) -> list[str]:
        """The command that runs another one on the host."""
        return ["nsenter", "-t", str(self.first_pid), "-n", "-m", "-p", "-u", "--", *argv]

    def fabric(
        self, *arguments: str, check: bool = True, **environ: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of the fabric on the host."""
        argv = self.inside(sys.executable, "-m", "fabric.cli", *arguments)
        env = {key: value for key, value in os.environ.items() if not key.startswith("FABRIC_")}
        env |= {"FABRIC_STATE_DIR": str(self._net.state)} | environ
        return _run(*argv, check=check, env=env, cwd=ROOT)

    def script(
        self, name: str, *arguments: str, check: bool = True, **environ: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run one of the operator's scripts on the host."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("FABRIC_")}
        env |= {"FABRIC_STATE_DIR": str(self._net.state)} | environ
        env |= {"PTY_FABRIC": str(Path(sys.executable).with_name("fabric"))}
        path = str(ROOT / "cluster" / "bin" / name)
        return _run(*self.inside(path, *arguments), check=check, env=env, cwd=ROOT)

    def service(self, *argv: str) -> "subprocess.Popen[bytes]":
        """Start a program on the host that lives as long as the host does."""
        with (self.state / "service.log").open("ab") as log:
            made = subprocess.Popen(
                self.inside(*argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._helpers.append(made)
        return made

    def pids(self, name: str) -> list[int]:
        """Return the processes of a program on the host, by their pids out here."""
        space = Path(f"/proc/{self.first_pid}/ns/pid").readlink()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                here = (folder / "ns" / "pid").readlink() == space
                if here and (folder / "comm").read_text().strip() == name:
                    found.append(int(folder.name))
        return found

    def door(self, port: int, *, here: bool = False) -> str:
        """A gRPC address that leads to a port of the host: from the switch, or from itself."""
        path = self._net.folder / f"{self.name}-{'in' if here else 'out'}.sock"
        path.unlink(missing_ok=True)
        where = self.inside() if here else ["ip", "netns", "exec", self._net.switch]
        argv = [*where, sys.executable, "-I", "-S", "-c", _FORWARDER, str(path), self.ip, str(port)]
        helpers = self._helpers if here else self._net.helpers
        helpers.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL))
        eventually_sync(path.exists, within=10, what="the door is open")
        return f"unix:{path}"

    def unplug(self) -> None:
        """Remove the host's network."""
        _run("ip", "netns", "del", self._netns, check=False)


class Net:
    """Some hosts and their switch; leaving it removes all of them, whatever state they are in."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.mark = f"pf{secrets.token_hex(3)}"
        self.switch = f"{self.mark}-sw"
        self.folder = Path(tempfile.mkdtemp(prefix="pfn-", dir="/tmp"))
        self.state = self.folder / "s"
        self.helpers: list[subprocess.Popen[bytes]] = []
        self.hosts = {name: Host(self, name, number) for number, name in enumerate(names, 1)}

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    def __enter__(self) -> Self:
        try:
            self.state.mkdir(mode=0o700)
            names = [f"{host.ip} {name}" for name, host in self.hosts.items()]
            rows = "\n".join(["127.0.0.1 localhost", *names, ""])
            self.state.with_name("s.hosts").write_text(rows)
            _run("ip", "netns", "add", self.switch)
            _run("ip", "-n", self.switch, "link", "add", "b0", "type", "bridge")
            _run("ip", "-n", self.switch, "addr", "add", f"{SUBNET}.254/24", "dev", "b0")
            for link in ("lo", "b0"):
                _run("ip", "-n", self.switch, "link", "set", link, "up")
            for host in self.hosts.values():
                host.plug_in()
                host.power_on()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove everything."""
        ray = [self._ray_folder(host) for host in self.hosts.values()]
        for host in self.hosts.values():
            host.power_off()
        for helper in self.helpers:
            helper.kill()
            helper.wait()
        for host in self.hosts.values():
            host.unplug()
        _run("ip", "netns", "del", self.switch, check=False)
        for folder in (*ray, self.folder):
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    @staticmethod
    def _ray_folder(host: Host) -> Path | None:
        """Where a host's Ray keeps its files, which lie outside of the host's folder."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            return Path(json.loads((host.state / "cluster.json").read_text())["temp_dir"])
        return None
