"""A second consumer: a remote shell over ssh against a server of our own, by the facade."""

import asyncio
import getpass
import os
import shutil
import socket
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.local_fabric import local_fabric

SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
pytestmark = [
    pytest.mark.skipif(not (SSHD and shutil.which("ssh")), reason="needs sshd and ssh"),
    pytest.mark.skipif(os.getuid() != 0, reason="sshd needs root to log somebody in"),
]
CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/me.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
PrintMotd no
PrintLastLog no
"""


def prepared(folder):
    """Write keys and the configuration of a server; return its port."""
    for name in ("host", "me"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True
        )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd insists on it
    (folder / "config").write_text(CONFIG.format(port=port, folder=folder))
    return port


@asynccontextmanager
async def server(folder):
    """A server on loopback; yields its port."""
    port = prepared(folder)
    process = await asyncio.create_subprocess_exec(
        SSHD, "-D", "-e", "-f", folder / "config",
        stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:

        def listens():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        await eventually(listens)
        yield port
    finally:
        process.terminate()
        await process.wait()


async def until(stream, wanted):
    seen = b""
    async with asyncio.timeout(15):
        while wanted not in seen:
            seen += await stream.read()
    return seen


async def test_a_remote_shell_is_opened_answered_driven_resized_and_left(tmp_path):
    async with server(tmp_path) as port, local_fabric() as fabric, fabric.client() as client:
        opened = await client.pty.open(
            client,
            f"PS1='' exec ssh -F none -tt -p {port} -i {tmp_path}/me"
            f" -o UserKnownHostsFile={tmp_path}/known -o StrictHostKeyChecking=ask"
            f" {getpass.getuser()}@127.0.0.1 exec sh",
            term="xterm-256color", rows=20, cols=90,
            env={"PS1": "remote> "},
        )  # fmt: skip
        assert "Are you sure you want to continue connecting" in opened.initial_output
        async with client.pty.stream(client, opened.session_id, offset=opened.next_offset) as far:
            await far.writeline("yes")
            await until(far, b"Permanently added")
            await far.writeline("echo far-$((6*7)); stty size; echo $SSH_CONNECTION | cut -c1-9")
            seen = await until(far, b"\r\n127.0.0.1")
            assert b"far-42\r\n20 90\r\n" in seen
            await far.resize(11, 44)
            await far.writeline("stty size")
            await until(far, b"11 44\r\n")
            await far.writeline("sleep 1000")
            await until(far, b"sleep 1000\r\n")
            await far.keys("Ctrl-C")
            await far.writeline("echo s=$?")
            await until(far, b"s=130")
            await far.writeline("exit 9")
            while not far.at_eof():
                await far.read()
        info = await client.session(opened.session_id).status()
        assert info.status.exit.exit_code == 9
        assert await client.pty.close(client, opened.session_id)
