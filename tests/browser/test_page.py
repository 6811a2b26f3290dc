"""What the page does with frames and keys, against a server that the test plays."""

from typing import Literal

import pytest
from playwright.async_api import Browser, BrowserContext, expect

from tests.support.chromium import DESK, PHONE, picture, screen_text, window
from tests.support.eventually import eventually
from tests.support.scripted_server import SETTINGS, ScriptedServer

# Everything the renderer would answer by itself, and the modes in which it reports unasked.
QUESTIONS = (
    "\x1b[c\x1b[>c\x1b[=c\x1b[0c\x1b[5n\x1b[6n\x1b[?6n\x1b[?15n\x1b[>q\x1b[?25$p\x1b[4$p\x1b[x"
    "\x1b[14t\x1b[16t\x1b[18t\x1b[21t\x1b[?u\x05"
    "\x1b]4;1;?\x07\x1b]10;?\x07\x1b]11;?\x1b\\\x1b]12;?\x07\x1b]52;c;?\x07"
    "\x1bP$qm\x1b\\\x1bP+q544e\x1b\\\x1b[?1004h\x1b[?1000;1006h\x1b[?1003h"
)
PASTE = """text => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  const target = document.querySelector("#stage textarea");
  target.dispatchEvent(
    new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""


async def shows(server: ScriptedServer, text: str) -> None:
    async def there() -> bool:
        return text in await screen_text(server.page)

    await eventually(there, what=f"{text!r} on the screen")


async def notices(server: ScriptedServer) -> list[str]:
    return await server.page.locator("#notices .notice span").all_inner_texts()


async def holding(server: ScriptedServer) -> None:
    """Give the page a lease, by one key at an idle prompt."""
    await server.idle()
    await server.page.keyboard.type("e")
    await server.sent("human.begin")
    server.say("human.granted", lease=1)
    server.stand("busy", "human")
    await server.page.locator("#status").get_by_text("You are typing").wait_for()


async def test_ticket_travels_in_the_first_frame_and_leaves_the_address(server: ScriptedServer):
    (hello,) = await server.sent("hello")
    assert hello == {"v": 1, "type": "hello", "ticket": "ticket"}
    assert server.page.url == "http://page.test/"


async def test_first_key_asks_with_itself_and_the_others_wait_for_the_grant(server: ScriptedServer):
    await server.idle()
    await server.page.keyboard.type("echo")
    (begin,) = await server.sent("human.begin")
    assert begin == {"v": 1, "generation": 1, "type": "human.begin", "data": "e"}
    assert not server.of("human.input")
    server.say("human.granted", lease=1)
    (waited,) = await server.sent("human.input")
    assert waited["data"] == "cho"
    await server.page.keyboard.press("Enter")
    assert (await server.sent("human.input", 2))[1]["data"] == "\r"
    assert len(server.of("human.begin")) == 1


async def test_typing_while_a_model_works_is_dropped_for_ever(server: ScriptedServer):
    await server.idle()
    server.stand("busy", "model-send", takeover=4)
    await server.page.locator("#status").get_by_text("Model is working").wait_for()
    await server.page.keyboard.type("rm\r")
    await server.page.get_by_text("Take over input to answer").wait_for()
    server.stand()
    await server.page.locator("#status").get_by_text("Idle prompt").wait_for()
    await server.page.keyboard.type("x")
    (begin,) = await server.sent("human.begin")
    assert begin["data"] == "x"
    assert not server.of("human.input")


async def test_take_over_sends_the_target_and_moves_the_keyboard_to_the_terminal(
    server: ScriptedServer,
):
    await server.idle()
    button = server.page.locator("#takeover")
    await expect(button).to_be_disabled()
    server.stand("busy", "model-send", takeover=4, pending=2)
    await expect(button).to_be_enabled()
    assert (await server.page.locator("#status").inner_text()).startswith("Controller")
    await expect(server.page.locator("#status")).to_contain_text("2 queued")
    await button.click()
    (taken,) = await server.sent("human.takeover")
    assert taken == {"v": 1, "generation": 1, "type": "human.takeover", "target": 4}
    await server.page.keyboard.insert_text("你好 🎉")
    assert not server.of("human.input")
    server.say("human.granted", lease=2)
    assert (await server.sent("human.input"))[0]["data"] == "你好 🎉"


async def test_the_renderer_never_types(server: ScriptedServer):
    await holding(server)
    server.print(QUESTIONS + "asked")
    await shows(server, "asked")
    await server.page.locator("#clear").focus()
    await server.page.locator("#stage").click(position={"x": 300, "y": 200})
    await server.page.mouse.wheel(0, 300)
    await server.page.keyboard.type("k")
    (only,) = await server.sent("human.input")
    assert only["data"] == "k"


async def test_a_paste_that_looks_like_an_answer_is_a_persons(server: ScriptedServer):
    await holding(server)
    await server.page.evaluate(PASTE, "\x1b[1;1R\x1b[?1;2c")
    (pasted,) = await server.sent("human.input")
    assert pasted["data"] == "\x1b[1;1R\x1b[?1;2c"


async def test_output_follows_the_law_of_the_sequence(server: ScriptedServer):
    await server.idle()
    server.print("one ")
    await shows(server, "$ one")
    server.sequence -= 4
    server.print("one ")  # again
    server.print("two")
    await shows(server, "$ one two")
    server.sequence += 10
    server.print("lost")
    await server.sent("snapshot")
    server.print("more")
    server.paint("anew> ")
    server.print("end")
    await shows(server, "anew> end")
    assert len(server.of("snapshot")) == 1


async def test_characters_split_between_frames_are_whole(server: ScriptedServer):
    await server.idle("")
    raw = "─你🎉".encode()
    for at in range(len(raw)):
        server.print(raw[at : at + 1])
    await shows(server, "─你🎉")


async def test_what_was_painted_is_acknowledged(server: ScriptedServer):
    await server.idle()
    for _ in range(4):
        server.print(b"x" * 16_384)
    acks = await server.sent("ack")
    assert all(ack["sequence"] <= server.sequence for ack in acks)


async def test_a_short_drop_heals_and_sends_nothing_twice(server: ScriptedServer):
    await holding(server)
    await server.page.keyboard.type("a")
    await server.sent("human.input")
    await server.close(1011)
    assert (await server.sent("hello", 2))[1] == {"v": 1, "type": "hello", "resume": "proof"}
    await expect(server.page.locator("#status")).to_contain_text("Reconnecting")
    await server.page.keyboard.type("b")
    await server.attach(resume="next")
    server.paint("$ ea")
    server.say("human.granted", lease=1)
    server.stand("busy", "human")
    sent = await server.sent("human.input", 2)
    assert [frame["data"] for frame in sent] == ["a", "b"]


async def test_keys_for_a_lease_that_is_gone_are_given_up_visibly(server: ScriptedServer):
    await holding(server)
    await server.close(1011)
    await server.page.keyboard.type("b")
    await server.sent("hello", 2)
    await server.attach()
    server.paint("$ ")
    server.stand()
    await server.page.get_by_text("has been discarded").wait_for()
    assert not server.of("human.input")


@pytest.mark.parametrize("code", [1007, 1008, 1009])
async def test_after_a_fault_of_the_protocol_a_person_reconnects(server: ScriptedServer, code: int):
    await server.idle()
    await server.close(code)
    await expect(server.page.locator("#status")).to_contain_text("Disconnected")
    await server.page.get_by_text("did not understand each other").wait_for()
    await server.page.locator("#reconnect").click()
    await server.sent("hello", 2)
    await server.idle()


async def test_a_frame_that_is_none_ends_the_connection(server: ScriptedServer):
    await server.idle()
    server.send_raw('{"v":1,"generation":1,"type":"output","sequence":-1}')
    await expect(server.page.locator("#status")).to_contain_text("Disconnected")
    assert any("did not understand" in text for text in await notices(server))


async def test_the_end_of_the_terminal_clears_the_screen(server: ScriptedServer):
    await server.idle("secret on the screen")
    await server.close(4002)
    await server.page.get_by_text("has been closed").wait_for()
    assert await server.page.locator("#stage > *").count() == 0


async def test_a_used_link_says_so(server: ScriptedServer):
    await server.sent("hello")
    await server.close(4003)
    await server.page.get_by_text("not valid any more").wait_for()
    await expect(server.page.locator("#reconnect")).to_be_disabled()


async def test_a_reload_comes_back_with_the_proof(server: ScriptedServer):
    await server.idle()
    await server.page.reload()
    assert (await server.sent("hello", 2))[1] == {"v": 1, "type": "hello", "resume": "proof"}


async def test_a_page_without_a_ticket_says_what_is_needed(browser: BrowserContext):
    server = await ScriptedServer.open(browser, link="/")
    await server.page.get_by_text("Open this page by the link").wait_for()
    assert server.connections == 0


async def test_reset_asks_first(server: ScriptedServer):
    await server.idle()
    page = server.page
    await page.locator("#reset").click()
    await expect(page.locator("#confirm-no")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.locator("#confirm")).to_be_hidden()
    await page.locator("#reset").click()
    await page.get_by_role("button", name="Cancel").click()
    assert not server.of("terminal.reset")
    await page.locator("#reset").click()
    await picture(page, "reset-asks")
    await page.get_by_role("button", name="Confirm reset").click()
    (frame,) = await server.sent("terminal.reset")
    assert frame == {"v": 1, "generation": 1, "type": "terminal.reset", "confirmed": True}
    await server.close(4001)
    await server.sent("hello", 2)
    server.generation = 2
    server.sequence = 0
    await server.idle("fresh$ ")
    await shows(server, "fresh$")
    assert any("new shell" in text for text in await notices(server))


@pytest.mark.parametrize("queue", ["blocked", "exited"])
async def test_a_controller_may_reset_what_is_stuck_and_a_reader_may_not(
    server: ScriptedServer, queue: str
):
    await server.idle()
    server.stand(queue)
    await expect(server.page.locator("#reset")).to_be_enabled()
    await server.close(1011)
    await server.sent("hello", 2)
    await server.attach("readonly", reason="occupied")
    server.paint("")
    server.stand(queue)
    await expect(server.page.locator("#reset")).to_be_disabled()
    await server.page.get_by_text("Another view controls this terminal").wait_for()


async def test_a_reader_sends_nothing(server: ScriptedServer):
    await server.attach("readonly", reason="readonly")
    server.paint("$ ")
    server.stand("busy", "model-send", takeover=3)
    page = server.page
    await expect(page.locator("#status")).to_contain_text("Model is working")
    assert (await page.locator("#status").inner_text()).startswith("Read only")
    await page.locator("#stage").click(position={"x": 200, "y": 100})
    await page.keyboard.type("x\r")
    await page.get_by_text("This view only reads").wait_for()
    for name in ("takeover", "interrupt", "reset"):
        await expect(page.locator(f"#{name}")).to_be_disabled()
    assert {frame["type"] for frame in server.frames} == {"hello"}


async def test_rows_and_columns_never_change(server: ScriptedServer):
    await server.idle("x" * 160 + "y")
    page = server.page

    async def rows() -> list[str]:
        return (await screen_text(page)).splitlines()

    await shows(server, "y")
    for size in (DESK, PHONE, {"width": 2400, "height": 1300}):
        await page.set_viewport_size(size)
        assert await rows() == ["x" * 160, "y"]
        assert await page.locator("#stage .xterm-rows > div").count() == 40
    for _ in range(20):
        if await page.locator("#larger").is_enabled():
            await page.locator("#larger").click()
    await expect(page.locator("#size")).to_have_text("28")
    await expect(page.locator("#larger")).to_be_disabled()
    assert await rows() == ["x" * 160, "y"]
    for _ in range(30):
        if await page.locator("#smaller").is_enabled():
            await page.locator("#smaller").click()
    await expect(page.locator("#size")).to_have_text("8")
    assert await rows() == ["x" * 160, "y"]
    assert {frame["type"] for frame in server.frames} == {"hello"}


async def test_clearing_the_view_is_local(server: ScriptedServer):
    await server.idle("".join(f"line {n}\r\n" for n in range(60)) + "$ ")
    await shows(server, "line 59")
    await server.page.locator("#clear").click()

    async def cleared() -> bool:
        return await screen_text(server.page) == "$"

    await eventually(cleared)
    assert {frame["type"] for frame in server.frames} == {"hello"}


async def test_input_beyond_the_limit_is_not_sent_and_interrupting_still_works(
    server: ScriptedServer,
):
    await server.attach(settings=SETTINGS | {"max_input_bytes": 8})
    server.paint("$ ")
    server.stand()
    await server.page.locator("#status").get_by_text("Idle prompt").wait_for()
    await server.page.keyboard.type("e")
    await server.sent("human.begin")
    server.say("human.granted", lease=1)
    server.stand("busy", "human")
    await server.page.evaluate(PASTE, "12345678")
    await server.page.get_by_text("more than one turn of input may hold").wait_for()
    assert not server.of("human.input")
    await server.page.locator("#interrupt").click()
    assert (await server.sent("human.cancel"))[0] == {
        "v": 1, "generation": 1, "type": "human.cancel",
    }  # fmt: skip


async def test_programs_reach_neither_clipboard_nor_links_nor_title(server: ScriptedServer):
    await server.idle()
    server.print(
        "\x1b]52;c;aGVsbG8=\x07\x1b]2;title\x07\x1b]8;;http://evil.test\x07link\x1b]8;;\x07 done"
    )
    await shows(server, "link done")
    assert await server.page.title() == "Controller · shared-terminal"
    assert await server.page.locator("#stage a").count() == 0


async def test_everything_is_reached_by_keyboard_and_named(server: ScriptedServer):
    await server.idle()
    page = server.page
    await expect(page.locator("#stage textarea")).to_be_focused()
    await page.keyboard.press("F6")
    reached = []
    for _ in range(8):
        reached.append(await page.evaluate("document.activeElement.id"))
        await page.keyboard.press("Tab")
    assert [name for name in reached if name in ("reconnect", "clear", "smaller", "larger")]
    assert "reset" in reached
    await page.locator("#clear").focus()
    await page.keyboard.press("F6")
    await expect(page.locator("#stage textarea")).to_be_focused()
    unnamed = await page.evaluate(
        """[...document.querySelectorAll("#view button, #view input, #view textarea")]
           .filter(e => !(e.getAttribute("aria-label") || e.textContent.trim()
                          || e.closest("label")))
           .map(e => e.outerHTML)"""
    )
    assert not unnamed
    assert await page.locator("#status[role=status]").count() == 1
    server.stand("blocked")
    assert await page.locator("#notices[role=log]").count() == 1


async def test_output_is_read_aloud_when_asked(server: ScriptedServer):
    await server.idle()
    await server.page.locator("#spoken").check()
    server.print("spoken words")
    await (
        server.page.locator(".xterm-accessibility-tree")
        .get_by_text("spoken words")
        .wait_for(state="attached")
    )


async def test_cut_history_is_said_once(server: ScriptedServer):
    await server.attach()
    server.paint("$ ", truncated=True)
    server.stand()
    await server.page.get_by_text("Older history was cut").wait_for()
    await server.page.get_by_role("button", name="Dismiss").click()
    await expect(server.page.locator("#notices .notice")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["dark", "light"])
async def test_a_phone_scrolls_nothing_sideways(chrome: Browser, scheme: Literal["dark", "light"]):
    async with window(chrome, PHONE, scheme=scheme) as browser:
        server = await ScriptedServer.open(browser)
        await server.idle("\x1b[32mok\x1b[0m " + "wide " * 30 + "\r\n$ ")
        server.stand("busy", "model-send", takeover=3, pending=12)
        server.say("error", reason="QUEUE_FULL", message="terminal queue is full " * 6)
        await server.page.locator("#reset").click()
        width = await server.page.evaluate("document.documentElement.scrollWidth")
        assert width == PHONE["width"]
        await server.page.locator("#confirm-yes").scroll_into_view_if_needed()
        await expect(server.page.locator("#confirm-yes")).to_be_in_viewport()
        await picture(server.page, f"phone-{scheme}")
        assert not server.complaints


async def test_the_list_shows_every_terminal_and_leads_to_it(server: ScriptedServer):
    rows = [
        {"id": f"ses_{n}", "name": name, "program": program, "node": "node-a", "state": state,
         "age_s": age, "last_activity_s": quiet}
        for n, (name, program, state, age, quiet) in enumerate([
            ("shared-terminal", "bash", "running", 3700, 2),
            ("build", "bash", "running", 420, 61),
            ("repl", "python3 -q", "exited", 90_100, 8000),
        ])
    ]  # fmt: skip
    await server.attach("readonly", kind="overview", reason="readonly", session=None)
    server.say("sessions", sessions=rows)
    page = server.page
    await page.get_by_role("row", name="build").wait_for()
    assert await page.locator("#view").is_hidden()
    await expect(page.locator("#list-status")).to_contain_text("3 open")
    first = await page.get_by_role("row").nth(1).inner_text()
    assert first.split("\t")[:6] == [
        "shared-terminal", "bash", "node-a", "running", "1 h 01 min", "2 s ago",
    ]  # fmt: skip
    await picture(page, "list")
    server.say("sessions", sessions=rows[1:])
    await expect(page.locator("#list-status")).to_contain_text("2 open")
    await page.get_by_role("button", name="Watch build").click()
    assert (await server.sent("watch"))[0]["session"] == "ses_1"
    server.say("watch", session="ses_1", ticket="one-time")
    assert (await server.sent("hello", 2))[1]["ticket"] == "one-time"
    await server.attach("readonly", kind="session", reason="readonly",
                        session={"name": "build", "program": "bash", "node": "node-a"})  # fmt: skip
    server.paint("building…")
    await shows(server, "building…")
    for name in ("takeover", "interrupt", "reset"):
        await expect(page.locator(f"#{name}")).to_be_hidden()
    await page.locator("#back").click()
    await page.get_by_role("row", name="repl").wait_for()


@pytest.mark.parametrize("scheme", ["dark", "light"])
async def test_a_busy_terminal_in_both_schemes(chrome: Browser, scheme: Literal["dark", "light"]):
    async with window(chrome, scheme=scheme) as browser:
        server = await ScriptedServer.open(browser)
        await server.idle(
            "\x1b[32mmodel@node-a\x1b[0m:\x1b[34m~/src\x1b[0m$ make check\r\n"
            "lint \x1b[32mok\x1b[0m  types \x1b[33mslow\x1b[0m  layers \x1b[31mbroken\x1b[0m\r\n"
            "你好 世界 🎉 ─┐ \x1b[38;2;200;110;60mtrue colour\x1b[0m \x1b[1mbold\x1b[0m "
            "\x1b[2mfaint\x1b[0m \x1b[4munderlined\x1b[0m \x1b[7mreversed\x1b[0m\r\nName? "
        )
        server.stand("busy", "model-send", takeover=3, pending=2)
        await expect(server.page.locator("#takeover")).to_be_enabled()
        await server.page.keyboard.type("x")
        await server.page.get_by_text("Take over input to answer").wait_for()
        await picture(server.page, f"desk-{scheme}")
        assert not server.complaints
