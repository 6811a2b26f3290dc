"""A session worker in this process: real shim, real PTY, real channel, no Ray."""

import secrets
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from fabric.core.ids import new_request_id, new_session_id, new_slot_id
from fabric.core.model import (
    Caller,
    CloseReceipt,
    OpenResult,
    OpenSpec,
    ReadPage,
    SandboxMode,
    SendRequest,
    SendResult,
    SessionInfo,
    SignalDelivered,
)
from fabric.core.plain import from_plain, to_plain
from fabric.core.settings import WorkerSettings
from tests.support.eventually import eventually
from workers.actor import SessionWorker
from workers.dial import ChannelClient
from workers.slot import SlotConfig

OWNER = "own_aaaaaaaaaaaaaaaa"
CALLER = Caller(OWNER, 1)


def spec_for(kind="shell", **facts):
    """What the registry would ask for."""
    base = OpenSpec(
        session_id=new_session_id(),
        owner_id=OWNER,
        epoch=1,
        principal="me",
        agent="test",
        type=kind,
        mode=SandboxMode.DANGER_FULL_ACCESS,
        workspace_root="/tmp",
    )
    return replace(base, **facts)


class Terminal:
    """One session through its channel, with the verbs of a caller."""

    def __init__(self, worker, client):
        self.worker = worker
        self.client = client
        self.spec = None
        self.opened = None

    async def open(self, kind="shell", **facts):
        self.spec = spec_for(kind, **facts)
        raw = await self.client.call("open", {"spec": to_plain(self.spec)})
        self.opened = from_plain(OpenResult, raw)
        return self.opened

    def args(self, caller=CALLER, **more):
        return {"session_id": self.spec.session_id, "caller": to_plain(caller), **more}

    async def send(self, text, *, submit=True, timeout_s=None, request_id=None, caller=CALLER):
        request = SendRequest(
            request_id or new_request_id(), text.encode(), submit=submit, timeout_s=timeout_s
        )
        raw = await self.client.call("send", self.args(caller, request=to_plain(request)))
        return from_plain(SendResult, raw)

    async def read(self, offset=0, count=500):
        raw = await self.client.call("read", self.args(offset=offset, count=count))
        return from_plain(ReadPage, raw)

    async def signal(self, name, request_id=None):
        args = self.args(name=name, request_id=request_id or new_request_id())
        return from_plain(SignalDelivered, await self.client.call("signal", args))

    async def info(self):
        return from_plain(SessionInfo, await self.client.call("status", self.args()))

    async def send_started(self, program=None):
        """Wait until a send is active (and ``program`` is in the foreground)."""
        await eventually(lambda: self.worker.session.sending.is_busy)
        if program is not None:
            await eventually(lambda: self._foreground() == program)

    def _foreground(self):
        group = self.worker.session.parts.inspector.foreground()
        try:
            return Path(f"/proc/{group}/comm").read_text().strip()
        except OSError:
            return None

    async def slot_free(self):
        await eventually(lambda: not self.worker.session.sending.is_busy)

    async def callers(self, count):
        await eventually(lambda: self.worker.session.sending.callers == count)

    async def watched(self):
        await eventually(lambda: len(self.worker.session.changed) > 0)

    async def session_exists(self):
        await eventually(lambda: self.worker.session is not None)

    async def session_gone(self):
        await eventually(lambda: self.worker.session is None)

    async def close(self):
        args = {"session_id": self.spec.session_id, "reason": "test"}
        return from_plain(CloseReceipt, await self.client.call("close", args))


def config_in(folder):
    """A slot below ``folder``."""
    return SlotConfig(new_slot_id(), secrets.token_hex(16), str(folder), "here")


@asynccontextmanager
async def worker_in(folder, settings=None, config=None):
    """A started worker and a client of its channel; its slot is ended at the end."""
    config = config or config_in(folder)
    worker = SessionWorker(config, settings or WorkerSettings())
    await worker.start()
    client = await ChannelClient.connect(config.channel_path, config.key)
    try:
        yield Terminal(worker, client)
    finally:
        if client.is_open:
            await client.call("shutdown")
        client.close()
        await client.closed
        await worker.stop()
