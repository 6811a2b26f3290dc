"""A shim lives as long as its shell, so any later worker must get on with it.

``tests/cases/shim_protocol_v1.jsonl`` holds the bytes of version 1 as they were; it is never
written again (``tests/terminal/shim/record.py`` makes one for a new version).
"""

import array
import asyncio
import contextlib
import json
import os
import socket
import struct

import pytest

from tests.support.paths import TESTS
from tests.terminal.shim.conftest import KEY
from tests.terminal.shim.record import record
from workers.shim.client import ShimClient

RECORDS = sorted((TESTS / "cases").glob("shim_protocol_v*.jsonl"))
# A name varies too: a program that is ended at once may not have reached its exec yet.
VARIES = {"pid", "shim_pid", "start_time", "elapsed_s", "adoption", "name"}


def frames(path):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [(row["to"], bytes.fromhex(row["frame"])) for row in rows]


def body(frame):
    return json.loads(frame[4:])


def same_shape(old, new, where=""):
    """Everything that was said before is said still, in the same words; more may be said."""
    if isinstance(old, dict):
        assert isinstance(new, dict), where
        for key, value in old.items():
            assert key in new, f"{where}.{key} is not said any more"
            if key not in VARIES:
                same_shape(value, new[key], f"{where}.{key}")
            else:
                assert type(new[key]) is type(value), f"{where}.{key}"
    elif isinstance(old, list):
        assert isinstance(new, list), where
        assert len(old) == len(new), where
        for before, after in zip(old, new, strict=True):
            same_shape(before, after, where)
    else:
        assert old == new, where


class OldHolder:
    """Writes recorded bytes to a living shim."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(str(path))

    def read(self):
        data, ancillary, _, _ = self.sock.recvmsg(4, socket.CMSG_SPACE(64))
        for _, _, payload in ancillary:
            for fd in array.array("i", payload):
                os.close(fd)
        (size,) = struct.unpack(">I", data)
        whole = b""
        while len(whole) < size:
            whole += self.sock.recv(size - len(whole))
        return json.loads(whole)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
async def test_a_shim_of_today_serves_the_holders_of_every_version(slots, path):
    client = await slots.launch()
    client.close()
    await asyncio.to_thread(_replay, slots.socket(), path)
    slots.clients.clear()


def _replay(where, path):
    with contextlib.ExitStack() as holders:
        _replay_with(holders, where, path)


def _replay_with(holders, where, path):
    holder = None
    for to, frame in frames(path):
        if to == "shim":
            if body(frame).get("op") == "hello":
                before, holder = holder, OldHolder(where)
                holders.callback(holder.sock.close)
            holder.sock.sendall(frame)
            continue
        expected = body(frame)
        if expected.get("event") == "superseded":
            same_shape(expected, before.read(), "superseded")
            before.sock.close()
        else:
            same_shape(expected, holder.read(), str(expected.get("id", "hello")))


class OldShim:
    """Answers a holder of today with recorded bytes, after looking at what it was asked."""

    def __init__(self, path, where):
        self.rows = frames(path)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(where))
        self.listener.listen()
        self.listener.settimeout(20)

    def serve(self):
        """Serve the second connection of the record: adopt, labels, resize, teardown, quit."""
        at = [i for i, (_, frame) in enumerate(self.rows) if body(frame).get("op") == "hello"][1]
        with contextlib.closing(self.listener.accept()[0]) as peer:
            peer.settimeout(20)
            for to, frame in self.rows[at:]:
                if to == "shim":
                    (size,) = struct.unpack(">I", peer.recv(4))
                    same_shape(body(frame), json.loads(peer.recv(size)), "request")
                elif "event" not in body(frame) or body(frame)["event"] == "exit":
                    self.answer(peer, frame)
        self.listener.close()

    @staticmethod
    def answer(peer, frame):
        names = body(frame).get("fds", [])
        fds = [os.memfd_create(name) for name in names]
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        peer.sendmsg([frame], rights)
        for fd in fds:
            os.close(fd)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
async def test_a_holder_of_today_gets_on_with_the_shims_of_every_version(tmp_path, path):
    shim = OldShim(path, tmp_path / "old.s")
    serving = asyncio.create_task(asyncio.to_thread(shim.serve))
    holder = await ShimClient.connect(socket=tmp_path / "old.s", key=KEY)
    adopted = await holder.adopt()
    assert adopted is not None
    assert adopted.labels == b"{}"
    for fd in (adopted.master_fd, adopted.log_fd):
        os.close(fd)
    await holder.set_labels(b'{"later": true}')
    await holder.resize(40, 100)
    receipt = await holder.teardown(grace_s=0.3, shell_grace_s=0.3)
    assert [item.name for item in receipt.ended] == ["sleep"]
    assert holder.exited.result().signal == "SIGTERM"
    await holder.quit()
    await serving


async def test_the_newest_record_is_what_is_spoken_now(slots):
    """A change of the protocol needs a new version and its record, beside the old ones."""
    now = [(row["to"], bytes.fromhex(row["frame"])) for row in await record(slots.folder)]
    then = frames(RECORDS[-1])
    assert [to for to, _ in now] == [to for to, _ in then]
    for (_, old), (_, new) in zip(then, now, strict=True):
        same_shape(body(old), body(new), body(old).get("op", "answer"))
        assert set(body(old)) == set(body(new))
