"""A headless Chromium of the machine, driven by Playwright; pictures of what it shows."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from tests.support.eventually import scaled
from tests.support.paths import ROOT

# Nothing but the test's own page may go over the network: browsers look things up by themselves.
_ARGUMENTS = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
PICTURES = ROOT / "tests" / "artifacts" / "browser"
STATIC = ROOT / "fabric" / "web" / "static"
DESK = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
WAIT_MS = 10_000


def missing() -> str:
    """Return why no page can be shown here; empty when one can."""
    if _program() is None:
        return "no chromium on this machine (Debian: apt-get install chromium)"
    if not (STATIC / "index.html").exists():
        return "the page is not built: make web says why"
    return ""


def _program() -> str | None:
    named = os.environ.get("CHROMIUM")
    return named or shutil.which("chromium") or shutil.which("chromium-browser")


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Run a browser with a fresh profile; nothing of it is left."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=_program(),
            headless=True,
            chromium_sandbox=False,
            args=list(_ARGUMENTS),
        )
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def window(
    browser: Browser,
    size: dict[str, int] = DESK,
    *,
    scheme: Literal["dark", "light"] = "dark",
    user_agent: str | None = None,
) -> AsyncIterator[BrowserContext]:
    """Open a window that shares nothing with others: no storage, no cache, no clipboard."""
    context = await browser.new_context(
        viewport={"width": size["width"], "height": size["height"]},
        color_scheme=scheme,
        user_agent=user_agent,
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(scaled(WAIT_MS))
    try:
        yield context
    finally:
        await context.close()


async def picture(page: Page, name: str) -> Path:
    """Keep a picture of the page for whoever looks at the run."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    path = PICTURES / f"{name}.png"
    await page.screenshot(path=path)
    return path


async def screen_text(page: Page) -> str:
    """Return the rows that the renderer shows, as text."""
    rows = await page.locator("#stage .xterm-rows > div").all_inner_texts()
    return "\n".join(row.replace("\xa0", " ").rstrip() for row in rows).rstrip()
