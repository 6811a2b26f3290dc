"""Machines that join, are cut off, heal, lose their power and come back."""

import asyncio
import time

import pytest

from fabric.actors.handles import ABORT_TIMEOUT_S
from fabric.core.errors import FabricError, RegistryUnavailableError, SessionLostError
from tests.e2e.nodes.conftest import GATEWAY_PORT, GIVEN_UP_S, NAMES, WORD_S
from tests.support.eventually import eventually, pause, scaled

pytestmark = pytest.mark.timeout(600)
# Ray's own health checks (fabric/actors/rayenv.py); the registry must not wait for them.
RAY_NOTICES_S = 30.0
ANSWER_S = 6.0


async def open_on(client, *hosts):
    return dict(
        zip(
            hosts,
            await asyncio.gather(*(client.open(host=h, name=f"on-{h}") for h in hosts)),
            strict=True,
        )
    )


async def lost(session):
    """Tell whether the session was given up; whatever else is in the way does not count."""
    try:
        await session.status()
    except SessionLostError:
        return True
    except FabricError:
        return False
    return False


async def names(client):
    return {item.name for item in await client.list()}


async def answer(session):
    try:
        return await session.send("echo $X", timeout_s=10)
    except FabricError:
        return None


async def kinds(client, session):
    rows = []
    async with asyncio.timeout(10):
        async for event in client.events(0):
            if event.session_id == session.id:
                rows.append(str(event.kind))
            if rows and rows[-1] in ("session_lost", "session_readopted"):
                break
    return rows


async def test_sessions_run_on_every_machine_and_every_gateway_serves_each(client, machines, doors):
    opened = await open_on(client, *NAMES)
    for name, session in opened.items():
        assert name in (await session.send("hostname")).viewport.split()
    for door in doors.values():
        async with machines.client(door, owner_token=client.owner_token) as other:
            for name, session in opened.items():
                result = await other.session(session.id).send("hostname")
                assert name in result.viewport.split()


async def test_a_cut_off_machine_rests_is_given_up_and_resumes(client, machines):
    """First what the others see, then what stands beside the cut-off shell, then the healing."""
    opened = await open_on(client, "h2", "h3")
    far, near = opened["h3"], opened["h2"]
    before = await far.status()
    await far.send("X=kept")
    inside = machines.net["h3"].door(GATEWAY_PORT, here=True)
    async with machines.client(inside, owner_token=client.owner_token) as beside:
        there = beside.session(far.id)
        assert "kept" in (await there.send("echo $X")).viewport
        machines.net["h3"].cut()
        began = time.monotonic()
        try:

            async def rests():
                asked = time.monotonic()
                try:
                    await there.status()
                except RegistryUnavailableError:
                    return asked  # the refusal itself comes late: the client repeats it
                return None

            async def given_up():
                return None if "on-h3" in await names(client) else time.monotonic()

            rested, lost_at = await asyncio.gather(
                eventually(rests, within=WORD_S + 10, what="the session rests"),
                eventually(given_up, within=GIVEN_UP_S, what="it is given up"),
            )
            assert rested - began > WORD_S / 2, "it rested before its word ended"
            assert rested < lost_at, "it was given up before it rested"
            took = lost_at - began
            assert took < RAY_NOTICES_S, "the registry waited for Ray to notice"
            with pytest.raises(FabricError):
                await there.send("echo never")
            assert "on-h2" in await names(client)
            assert "ok" in (await near.send("echo ok")).viewport
            assert "session_lost" in await kinds(client, far)
            await client.open(host="h2", name="on-h3")
        finally:
            machines.net["h3"].heal()
        healed = time.monotonic()
        result = await eventually(lambda: answer(far), within=60, what="it resumes")
        back = time.monotonic() - healed
    assert "kept" in result.viewport
    assert (await far.status()).pid == before.pid
    assert "never" not in (await far.read()).text
    print(f"\ngiven up {took:.1f} s after the cut, back {back:.1f} s after the healing")  # noqa: T201


async def timed(work):
    """How long a call took, and what its caller was told."""
    began = time.monotonic()
    try:
        await work
        told = "ok"
    except FabricError as error:
        told = f"{error.reason} ({error.message})"
    return time.monotonic() - began, told


async def test_callers_get_their_answer_soon_after_a_cut(machines, doors):
    """Whoever calls another machine's session, and whoever does not, is told within seconds."""
    async with machines.client(doors["h1"], agent="callers") as client:
        opened = await open_on(client, "h2", "h3")
        far, near = opened["h3"], opened["h2"]
        in_flight = asyncio.create_task(timed(far.send("sleep 90", timeout_s=100)))
        sent = time.monotonic()
        await eventually(lambda: busy(far), within=10, what="the send runs")
        machines.net["h3"].cut()
        ran = time.monotonic() - sent
        try:
            told = {
                "a send in flight": in_flight,
                "its status": timed(far.status()),
                "a new send": timed(far.send("echo no", timeout_s=60)),
                "a read": timed(far.read()),
                "a signal": timed(far.signal("SIGINT")),
                "an open on its way there": timed(client.open(host="h3")),
                "an open elsewhere": timed(client.open(host="h2")),
                "a list": timed(client.list()),
                "a send elsewhere": timed(near.send("echo yes")),
            }
            answers = dict(zip(told, await asyncio.gather(*told.values()), strict=True))
            answers["a later open there"] = await timed(client.open(host="h3"))
            answers["a later list"] = await timed(client.list())
        finally:
            machines.net["h3"].heal()
        print("", *(f"{k}: {s:.1f} s, {t}" for k, (s, t) in answers.items()), sep="\n")  # noqa: T201
        await eventually(lambda: answer(far), within=110, what="it is back")
    took, told_in_flight = answers["a send in flight"]
    answers["a send in flight"] = (took - ran, told_in_flight)
    # An open that is on its way may take its time; what gives it up is Ray.
    on_its_way = answers.pop("an open on its way there")
    assert on_its_way[0] < scaled(RAY_NOTICES_S + ABORT_TIMEOUT_S)
    late = {what: row for what, row in answers.items() if row[0] > scaled(ANSWER_S)}
    assert not late
    assert {what for what, row in answers.items() if row[1] == "ok"} == {
        "an open elsewhere", "a list", "a send elsewhere", "a later list"
    }  # fmt: skip


async def busy(session):
    return (await session.status()).busy


async def test_a_machine_without_power_loses_only_its_own_and_may_come_back(client, machines):
    opened = await open_on(client, "h1", "h2", "h3")
    machines.net["h2"].power_off()
    began = time.monotonic()
    try:
        await eventually(lambda: lost(opened["h2"]), within=GIVEN_UP_S + 5, what="it is lost")
        took = time.monotonic() - began
        for name in ("h1", "h3"):
            assert "ok" in (await opened[name].send("echo ok")).viewport
        again = await client.open(name="on-h2", host="h1")
        await again.close()
    finally:
        machines.net["h2"].power_on()
        await asyncio.to_thread(machines.up, "h2")
    session = await eventually(lambda: try_open(client, "h2"), within=60)
    assert "h2" in (await session.send("hostname")).viewport.split()
    print(f"\nlost {took:.1f} s after the power")  # noqa: T201


async def try_open(client, host):
    try:
        return await client.open(host=host)
    except FabricError:
        return None


async def test_a_machine_that_was_given_up_by_the_cluster_starts_again_with_its_shells(
    client, machines
):
    """Ray ends what it took for dead; the shims keep the shells until the node is back."""
    session = (await open_on(client, "h3"))["h3"]
    before = await session.status()
    await session.send("X=kept")
    machines.net["h3"].cut()
    try:
        await pause(40, because="Ray gives a silent node up after 30 s")
    finally:
        machines.net["h3"].heal()
    healed = time.monotonic()
    result = await eventually(lambda: answer(session), within=110, what="it is adopted again")
    assert "kept" in result.viewport
    assert (await session.status()).pid == before.pid
    print(f"\nback {time.monotonic() - healed:.1f} s after the healing")  # noqa: T201
