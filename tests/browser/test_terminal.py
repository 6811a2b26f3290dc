"""A model and a person at one terminal: the real page, the real server, a real shell."""

import asyncio
import sys
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, expect

from fabric.client import FabricClient
from fabric.core.model import WaitReason
from tests.browser.real import Person
from tests.support.chromium import PHONE, picture, window
from tests.support.eventually import eventually
from tests.support.local_fabric import LocalFabric, local_fabric

IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 "
    "(KHTML, like Gecko) Version/17.0 Mobile/15E148 Safari/604.1"
)
# Asks four times, but not before the test has taken over: a model's send ends at a question.
INTERVIEW = """
import pathlib, sys, time
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.02)
answers = [input(f"q{n}? ") for n in range(1, 5)]
print("heard", " | ".join(answers))
"""
GRACE_S = 2.0


@pytest_asyncio.fixture(loop_scope="session")
async def fabric():
    async with local_fabric(worker__shared__disconnect_grace_s=str(GRACE_S)) as fabric:
        yield fabric


@pytest_asyncio.fixture(loop_scope="session")
async def client(fabric: LocalFabric):
    async with fabric.client() as client:
        yield client


class Interview:
    """A model's send of a program that asks four questions when it is let."""

    def __init__(self, client: FabricClient, folder: Path) -> None:
        self._client = client
        self._go = folder / "go"
        self._script = folder / "interview.py"
        self._script.write_text(INTERVIEW)

    def send(self) -> "asyncio.Task":
        command = f"{sys.executable} {self._script} {self._go}"
        return asyncio.ensure_future(self._client.shared.send(command))

    def go(self) -> None:
        self._go.touch()


async def taken_over(person: Person, client: FabricClient, folder: Path) -> Interview:
    """Let a model start the interview and a person take it over."""
    interview = Interview(client, folder)
    sending = interview.send()
    await person.stands("Controller", "Model is working")
    await person.presses("Take over input")
    await person.stands("Controller", "You are typing")
    assert (await sending).wait_reason is WaitReason.HUMAN_HANDOFF
    interview.go()
    await person.sees("q1?")
    return interview


async def test_a_person_types_at_the_idle_prompt(browser: BrowserContext, client: FabricClient):
    person = await Person.controls(browser, client)
    assert "#" not in person.page.url
    await person.types("echo hello\r")
    await person.sees("\nhello\n")
    await person.stands("Controller", "Idle prompt")
    await person.types("echo again-$((40+2))\r")
    await person.sees("again-42")
    page = await client.shared.read()
    assert "hello" in page.text + page.state.viewport
    await picture(person.page, "typed")
    assert not person.complaints


async def test_a_models_send_appears(browser: BrowserContext, client: FabricClient):
    person = await Person.controls(browser, client)
    result = await client.shared.send("echo from-$((20+3))")
    assert result.wait_reason is WaitReason.PROMPT
    await person.sees("from-23")
    await person.stands("Controller", "Idle prompt")


async def test_taking_over_answering_and_handing_back(
    browser: BrowserContext, client: FabricClient, tmp_path: Path
):
    person = await Person.controls(browser, client)
    await taken_over(person, client, tmp_path)
    follower = asyncio.ensure_future(client.shared.send("echo after-$((1+1))"))
    await person.stands("Controller", "1 queued")
    for number, answer in enumerate(("alice", "🎉 fête", "漢字かな", "naïve 👍 ok"), start=1):
        await person.sees(f"q{number}?")
        await person.types(answer)
        await person.sees(f"q{number}? {answer}")
        if number == 3:
            await picture(person.page, "answering")
        await person.types("\r")
    await person.sees("heard alice | 🎉 fête | 漢字かな | naïve 👍 ok")
    result = await follower
    assert result.wait_reason is WaitReason.PROMPT
    assert "after-2" in (result.output or "")
    await person.sees("after-2")
    await person.stands("Controller", "Idle prompt")
    page = await client.shared.read()
    assert "heard alice | 🎉 fête | 漢字かな | naïve 👍 ok" in page.text + page.state.viewport
    await picture(person.page, "handed-back")


async def test_interrupting_input(browser: BrowserContext, client: FabricClient, tmp_path: Path):
    person = await Person.controls(browser, client)
    await taken_over(person, client, tmp_path)
    await person.types("half an ans")
    await person.presses("Interrupt input")
    await person.sees("KeyboardInterrupt")
    await person.stands("Controller", "Idle prompt")
    await expect(person.page.locator("#interrupt")).to_be_disabled()


async def test_coming_back_within_the_grace_keeps_the_lease(
    browser: BrowserContext, client: FabricClient, tmp_path: Path
):
    person = await Person.controls(browser, client, cable=True)
    await taken_over(person, client, tmp_path)
    await person.types("one\r")
    await person.sees("q2?")
    await person.cut()
    await person.stands("Controller", "Reconnecting")
    await picture(person.page, "reconnecting")
    await person.types("two")
    person.mend()
    await person.stands("Controller", "You are typing")
    await person.sees("q2? two")
    await person.types("\rthree\rfour\r")
    await person.sees("heard one | two | three | four")


async def test_coming_back_after_the_grace_finds_an_idle_prompt(
    browser: BrowserContext, client: FabricClient, tmp_path: Path
):
    person = await Person.controls(browser, client, cable=True)
    await taken_over(person, client, tmp_path)
    await person.cut()
    await person.types("never typed")

    async def recovered() -> bool:
        state = (await client.shared.read()).state
        return state.holder is None and state.queue_status == "ready"

    await eventually(recovered, within=10 * GRACE_S, what="the lease recovered")
    person.mend()
    await person.stands("Controller", "Connected", "Idle prompt")
    await person.told("has been discarded")
    await person.sees("KeyboardInterrupt")
    assert "never typed" not in (await client.shared.read()).state.viewport


async def test_a_second_view_only_reads_until_the_first_has_gone(
    browser: BrowserContext, chrome: Browser, client: FabricClient
):
    first = await Person.controls(browser, client)
    async with window(chrome) as elsewhere:
        second = await Person.at(elsewhere, (await client.view_ticket()).url)
        await second.stands("Read only", "another view controls", "Connected")
        await second.told("Another view controls this terminal")
        await first.types("echo both-$((3+4))\r")
        await second.sees("both-7")
        await second.page.locator("#stage").click(position={"x": 300, "y": 300})
        await second.types("x")
        await second.told("This view only reads")
        await expect(second.page.locator("#reset")).to_be_disabled()
        await picture(second.page, "second-view")
        await first.page.close()

        async def obtained() -> bool:
            await second.presses("Reconnect")
            await second.stands("", "Connected")
            text = await second.page.locator("#status").inner_text()
            return text.startswith("Controller")

        await eventually(obtained, within=10 * GRACE_S, what="control after the grace")


async def test_a_phone_only_reads(chrome: Browser, client: FabricClient):
    async with window(chrome, PHONE, user_agent=IPHONE) as phone:
        person = await Person.at(phone, (await client.view_ticket()).url)
        await person.stands("Read only", "Connected", "Idle prompt")
        await client.shared.send("echo to-a-$((5+5))-phone")
        await person.sees("to-a-10-phone")
        assert await person.page.evaluate("document.documentElement.scrollWidth") == 390
        await picture(person.page, "phone-reads")


async def test_a_confirmed_reset_gives_everybody_the_next_shell(
    browser: BrowserContext, chrome: Browser, client: FabricClient
):
    person = await Person.controls(browser, client)
    async with window(chrome) as elsewhere:
        reader = await Person.at(elsewhere, (await client.view_ticket(readonly=True)).url)
        await reader.stands("Read only", "Connected", "Idle prompt")
        await person.types("X=old; echo gone-$((1+1))\r")
        await reader.sees("gone-2")
        await person.presses("Reset Terminal")
        await person.presses("Confirm reset")
        await person.told("this is a new shell")
        await person.stands("Controller", "Connected", "Idle prompt")
        await person.types("echo new-${X:-none}\r")
        await person.sees("new-none")
        await reader.sees("new-none")
        await reader.stands("Read only", "Connected")
        assert "gone-2" not in (await client.shared.read()).state.viewport


async def test_a_reload_keeps_control(browser: BrowserContext, client: FabricClient):
    person = await Person.controls(browser, client)
    await person.types("echo kept-$((6+6))\r")
    await person.sees("kept-12")
    await person.page.reload()
    await person.stands("Controller", "Connected", "Idle prompt")
    await person.sees("kept-12")


async def test_a_link_counts_once(browser: BrowserContext, client: FabricClient):
    link = (await client.view_ticket()).url
    person = await Person.at(browser, link)
    await person.stands("Controller", "Connected")
    thief = await Person.at(browser, link)
    await thief.told("not valid any more")
    await thief.stands("Read only", "Link not valid")
    await picture(thief.page, "old-link")


async def test_pages_of_other_origins_are_refused(
    browser: BrowserContext, fabric: LocalFabric, client: FabricClient
):
    ticket = (await client.view_ticket()).url.partition("#t=")[2]
    page = await browser.new_page()
    await page.route("http://evil.test/", lambda route: route.fulfill(body="<p>hello</p>"))
    await page.goto("http://evil.test/")
    hello = f'{{"v":1,"type":"hello","ticket":"{ticket}"}}'
    assert await page.evaluate(SPEAK, [fabric.url, hello]) == [1006, 0]
    person = await Person.at(browser, f"{fabric.url}/#t={ticket}")
    await person.stands("Controller", "Connected")


async def test_malformed_frames_are_closed(
    browser: BrowserContext, fabric: LocalFabric, client: FabricClient
):
    page = await browser.new_page()
    await page.goto(fabric.url)
    for frames, code in (
        (["no json"], 1008),
        (['{"v":2,"type":"hello","ticket":"x"}'], 1008),
        (['{"v":1,"type":"hello","ticket":"x","more":1}'], 1008),
        (['{"v":1,"type":"hello","ticket":"not-a-ticket"}'], 4003),
        ([None, '{"v":1,"generation":1,"type":"human.input","data":"x"}'], 1008),
        ([None, '{"v":1,"generation":9,"type":"heartbeat"}'], 1008),
        ([None, '{"v":1,"generation":1,"type":"heartbeat","more":1}'], 1008),
    ):
        ticket = (await client.view_ticket()).url.partition("#t=")[2]
        hello = f'{{"v":1,"type":"hello","ticket":"{ticket}"}}'
        sent = [hello if frame is None else frame for frame in frames]
        closed, _ = await page.evaluate(SPEAK, [fabric.url, *sent])
        assert closed == code, sent[-1]


async def test_the_list_of_terminals(browser: BrowserContext, client: FabricClient):
    shell = await client.open("shell", name="build")
    await client.open("python", name="repl")
    await client.shared.read()
    person = await Person.at(browser, (await client.view_ticket(overview=True)).url)
    rows = person.page.locator("#list-rows tr")
    await expect(rows).to_have_count(3)
    row = rows.filter(has_text="build")
    await expect(row).to_contain_text("local")
    await picture(person.page, "list-real")
    await person.page.get_by_role("button", name="Watch build").click()
    await person.stands("Read only", "Connected", "Running")
    await shell.send("echo watched-$((30+3))")
    await person.sees("watched-33")
    await picture(person.page, "watching")
    await person.presses("All terminals")
    await shell.close()
    await expect(rows).to_have_count(2)


# Speak to the server as any script of a page could: the code of the close, and frames received.
SPEAK = """([url, ...frames]) => new Promise(done => {
  const socket = new WebSocket(url.replace("http", "ws") + "/v1/socket", "pty-fabric.v1");
  let heard = 0;
  const say = () => { if (frames.length) socket.send(frames.shift()); };
  socket.onopen = say;
  socket.onmessage = () => { heard += 1; say(); };
  socket.onclose = event => done([event.code, heard]);
})"""
