"""Log lines of gateway and worker say whose call they are about."""

import io
import json
import logging

import pytest

from fabric.core import log
from fabric.core.errors import InternalError
from fabric.core.ids import new_request_id
from tests.support.local_fabric import local_fabric


@pytest.fixture
def lines():
    stream = io.StringIO()
    kept = {name: (list(found.handlers), found.level, found.propagate)
            for name in ("fabric", "workers") for found in [logging.getLogger(name)]}  # fmt: skip
    log.configure("INFO", stream)
    log.always(node="local")
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    log.always()
    for name, (handlers, level, propagate) in kept.items():
        found = logging.getLogger(name)
        found.handlers[:], found.propagate = handlers, propagate
        found.setLevel(level)


async def test_request_owner_session_and_node(lines, monkeypatch):
    async with local_fabric() as fabric, fabric.client() as client:
        shell = await client.open("shell")
        (worker,) = [item for item in fabric.slots.workers.values() if item.session is not None]

        def fail(offset, count):
            raise ValueError("a fault inside")

        request_id = new_request_id()
        await shell.send("echo hi", request_id=request_id)
        monkeypatch.setattr(worker.session.observing, "read", fail)
        with pytest.raises(InternalError):
            await shell.read()
        whose = {"owner": client.owner.owner_id, "session": shell.id, "node": "local"}
    (sent,) = [row for row in lines() if row.get("method") == "Send"]
    assert sent.items() >= (whose | {"request_id": request_id, "code": "OK"}).items()
    (failed,) = [row for row in lines() if row["logger"] == "workers.channel"]
    assert failed.items() >= whose.items()
    assert "a fault inside" in failed["error"]
    assert "echo hi" not in json.dumps(lines())
