"""A person before the page, with the whole product in this process behind it."""

import asyncio
import re
from typing import Any

from playwright.async_api import BrowserContext, Page, WebSocketRoute, expect

from fabric.client import FabricClient
from tests.support.chromium import screen_text
from tests.support.eventually import eventually, scaled

SLOW_MS = 20_000


class Person:
    """One page, and what a person does and sees there."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.sent: list[str] = []
        self._pairs: list[tuple[WebSocketRoute, WebSocketRoute]] = []
        self._cut = False
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console",
            lambda said: self.complaints.append(said.text) if "Policy" in said.text else None,
        )
        page.on("websocket", self._watch)

    @classmethod
    async def at(cls, browser: BrowserContext, link: str, *, cable: bool = False) -> "Person":
        """Open a link; ``cable``: through a connection that the test can cut."""
        person = cls(await browser.new_page())
        if cable:
            await person.page.route_web_socket("**/v1/socket", person._plug)
        await person.page.goto(link)
        return person

    @classmethod
    async def controls(
        cls, browser: BrowserContext, client: FabricClient, **options: Any
    ) -> "Person":
        """Open the owner's shared terminal and wait for its idle prompt."""
        person = await cls.at(browser, (await client.view_ticket()).url, **options)
        await person.stands("Controller", "Connected", "Idle prompt")
        return person

    async def stands(self, *words: str) -> None:
        """Wait until the status line says all of these, beginning with the first."""
        pattern = re.compile("^" + ".*".join(re.escape(word) for word in words), re.DOTALL)
        await expect(self.page.locator("#status")).to_have_text(pattern, timeout=scaled(SLOW_MS))

    async def sees(self, text: str, within: float = 15.0) -> None:
        async def there() -> bool:
            return text in await screen_text(self.page)

        await eventually(there, within=within, what=f"{text!r} on the screen")

    async def told(self, text: str) -> None:
        await self.page.locator("#notices").get_by_text(text).wait_for(timeout=scaled(SLOW_MS))

    async def types(self, text: str) -> None:
        """Type as a keyboard does; what no key makes comes as an input method gives it."""
        for part in text:
            if part == "\r":
                await self.page.keyboard.press("Enter")
            elif part.isascii():
                await self.page.keyboard.type(part)
            else:
                await self.page.keyboard.insert_text(part)

    async def presses(self, name: str) -> None:
        await self.page.get_by_role("button", name=name, exact=True).click()

    async def cut(self) -> None:
        """Pull the cable, and keep it out."""
        self._cut = True
        pairs, self._pairs = self._pairs, []
        for near, far in pairs:
            await far.close(code=1000)
            await near.close(code=1011)

    def mend(self) -> None:
        """Put the cable back; the page finds out by itself."""
        self._cut = False

    def _plug(self, near: WebSocketRoute) -> None:
        if self._cut:
            closing = asyncio.ensure_future(near.close(code=1011))
            closing.add_done_callback(lambda done: done.exception())
            return
        self._pairs.append((near, near.connect_to_server()))

    def _watch(self, socket: Any) -> None:
        socket.on("framesent", lambda payload: self.sent.append(str(payload)))
