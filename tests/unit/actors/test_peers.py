import asyncio

import pytest

from fabric.actors.peers import KEEP_S, Peers
from fabric.core.clock import ManualClock
from fabric.core.errors import GatewayUnavailableError
from fabric.core.model import NodeState


class Verbs:
    def __init__(self, address):
        self.address = address
        self.closed = False

    async def close(self):
        self.closed = True


class Book:
    def __init__(self):
        self.rows = {"h1": "127.0.0.1:1", "h2": None}
        self.asked = 0

    async def nodes(self):
        self.asked += 1
        return tuple(NodeState(host, True, gateway=where) for host, where in self.rows.items())


async def test_an_address_is_asked_for_once_and_its_connection_kept():
    book = Book()
    peers = Peers(book, Verbs, ManualClock())
    first = await peers.sessions_on("h1")
    assert first is await peers.sessions_on("h1")
    assert (first.address, book.asked) == ("127.0.0.1:1", 1)
    await peers.close()
    assert first.closed


async def test_a_node_without_a_gateway_is_named():
    with pytest.raises(GatewayUnavailableError, match="node h2"):
        await Peers(Book(), Verbs, ManualClock()).sessions_on("h2")


async def test_a_gateway_that_came_back_elsewhere_is_found():
    book, clock = Book(), ManualClock()
    peers = Peers(book, Verbs, clock)
    await peers.sessions_on("h1")
    book.rows["h1"] = "127.0.0.1:2"
    clock.advance(KEEP_S + 1)
    assert (await peers.sessions_on("h1")).address == "127.0.0.1:1"  # asked for behind its back
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (await peers.sessions_on("h1")).address == "127.0.0.1:2"
    await peers.close()


async def test_a_slow_answer_about_the_nodes_delays_no_call_to_a_known_one():
    book, clock = Book(), ManualClock()
    peers = Peers(book, Verbs, clock)
    await peers.sessions_on("h1")
    gate = asyncio.Event()
    answered = book.nodes

    async def slow():
        await gate.wait()
        return await answered()

    book.nodes = slow
    clock.advance(KEEP_S + 1)
    async with asyncio.timeout(1):
        assert (await peers.sessions_on("h1")).address == "127.0.0.1:1"
    await peers.close()
