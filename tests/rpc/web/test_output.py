"""What a page is shown: snapshot first, in order, bounded, whatever the terminal prints."""

import asyncio
import time

import pyte

from fabric.core.ids import new_request_id
from fabric.core.model import SignalName
from tests.support.eventually import eventually
from tests.support.local_fabric import local_fabric
from tests.support.page import page

FLOOD = (
    "yes 0123456789012345678901234567890123456789012345678901234567890123456789 | head -c 10000000"
)


def _shown(painted, rows=40, cols=160):
    """What a terminal makes of it: the lines above the screen and the screen."""
    screen = pyte.HistoryScreen(cols, rows, history=20_000, ratio=0.5)
    pyte.ByteStream(screen).feed(painted.replace(b"\x1b[!p", b""))
    above = ["".join(row[x].data for x in range(cols)).rstrip() for row in screen.history.top]
    return above, [line.rstrip() for line in screen.display]


async def test_a_new_view_gets_the_lines_above_the_screen_too(client):
    await client.shared.send("seq 1 300")
    async with page((await client.view_ticket()).url) as view:
        told = await view.until("snapshot")
        assert told["truncated"] is False
        above, screen = _shown(view.painted)
    assert above[:3] == ["$ seq 1 300", "1", "2"]
    assert [*above[1:], *screen][:300] == [str(n) for n in range(1, 301)]
    assert screen[-1] == "$"


async def test_history_is_the_newest_whole_lines_that_fit():
    small = local_fabric(
        node__warm_sessions="1",
        worker__shared__scrollback_lines="50",
    )
    async with small as fabric, fabric.client() as client:
        await client.shared.send("seq 1 300")
        async with page((await client.view_ticket()).url) as view:
            told = await view.until("snapshot")
            assert told["truncated"] is True
            above, screen = _shown(view.painted)
    assert screen[-1] == "$"
    assert 40 <= len(above) <= 60
    assert above == [str(n) for n in range(262 - len(above), 262)]


async def test_a_session_read_only_and_the_list(client):
    session = await client.open("shell", name="build")
    await session.send("echo 4$((1+1))")
    async with page((await client.view_ticket(overview=True)).url) as overview:
        await overview.until("attached", kind="overview")
        (row,) = (await overview.until("sessions"))["sessions"]
        assert (row["id"], row["name"], row["program"], row["node"]) == (
            session.id,
            "build",
            "shell",
            "local",
        )
        assert row["state"] == "ready"
        assert row["age_s"] >= 0
        await overview.send("watch", session="ses_nothing")
        assert (await overview.until("error"))["reason"] == "SESSION_NOT_FOUND"
        await overview.send("watch", session=session.id)
        ticket = (await overview.until("watch"))["ticket"]
        link = f"{overview.url}/#t={ticket}"
        async with page(link) as view:
            told = await view.until("attached", role="readonly")
            assert (told["kind"], told["session"]["name"]) == ("session", "build")
            await view.until("status", queue="readonly", process="running")
            await view.shows("42")
            await session.send("echo 7$((1+1))")
            await view.shows("72\r\n")
            await view.send("snapshot")
            await view.until("snapshot", 2)
            await view.shows("72")
            await session.signal(SignalName.SIGTERM)
            await session.send("exit")
            await view.until("status", process="exited")
            await session.close()
            assert await view.closed(10) == 4002


async def test_a_page_that_acknowledges_nothing_holds_up_nobody():
    bounds = local_fabric(node__warm_sessions="1", web__stall_s="0.5", web__window_bytes="65536")
    async with bounds as fabric, fabric.client() as client:
        link = (await client.view_ticket()).url
        other = (await client.view_ticket(readonly=True)).url
        async with page(link, acks=False) as stuck, page(other) as view:
            await stuck.until("attached")
            await view.until("attached")
            for _ in range(10):  # a flood alone may be skipped before it fills the window
                await client.shared.send("seq 2000")
            result = await client.shared.send(FLOOD)
            assert result.wait_reason == "prompt"
            assert await stuck.closed() == 1013
            assert stuck.received <= 65536 + 8192 + 32768
            await view.shows("$")
            assert view.code is None


async def test_in_a_flood_the_page_keeps_up_and_the_end_is_the_truth(fabric, client):
    link = (await client.view_ticket()).url
    async with page(link) as view:
        await view.until("status", queue="ready")
        await view.send("human.begin", data=f"({FLOOD}; echo over-$((1+1))) & cat\r")
        await view.until("human.granted")
        await eventually(lambda: view.received > 100_000)
        # The echo itself scrolls away among thousands of lines; what counts is that the page
        # soon shows what the terminal had printed when it came.
        await view.send("human.input", data="x\r")
        log = next(w.session.log for w in fabric.slots.workers.values() if w.sharing)
        printed, began = log.next_offset, time.monotonic()
        await eventually(lambda: view.sequence >= printed)
        assert time.monotonic() - began < 2
        await view.shows("over-2")
        await asyncio.sleep(0)
        await eventually(lambda: view.quiet_for(0.8), 10)
        above, screen = _shown(view.painted)
        lines = [line for line in (*above, *screen) if line.startswith("0123456789")]
        assert len(lines) >= 9_000  # the lines that were skipped came with the last snapshot


async def test_what_one_page_costs_is_bounded_in_a_flood(fabric, client):
    async with page((await client.view_ticket()).url) as view:
        await view.until("attached")
        await client.shared.send(FLOOD, request_id=new_request_id())
        await view.shows("$")
        await eventually(lambda: view.quiet_for(0.8), 10)
        assert len(view.painted) < 6 * 1024 * 1024
        assert view.sequence == (await client.shared.read(0, 1)).state.sequence


async def test_a_snapshot_on_request_never_takes_a_page_back(client):
    async with page((await client.view_ticket()).url) as view:
        await view.until("snapshot")
        await view.send("human.begin", data="for i in $(seq 1 400); do echo line $i; done\r")
        for number in range(2, 5):
            await view.send("snapshot")
            await view.until("snapshot", number)
        await view.until("human.revoked", reason="prompt")
        await view.shows("line 400")
        told = [
            frame["sequence"] for frame in view.frames if frame["type"] in ("snapshot", "output")
        ]
        assert told == sorted(told)
        assert view.sequence == (await client.shared.read(0, 1)).state.sequence
