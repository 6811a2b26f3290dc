"""One browser a run, a window of its own for each test; skipped, with the reason, without one."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext

from tests.support.chromium import chromium, missing, window
from tests.support.scripted_server import ScriptedServer


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = missing()
    for item in items:
        if "tests/browser/" not in item.path.as_posix():
            continue
        # The browser belongs to the loop it was started in.
        item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chrome() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def browser(chrome: Browser) -> AsyncIterator[BrowserContext]:
    async with window(chrome) as context:
        yield context


@pytest_asyncio.fixture(loop_scope="session")
async def server(browser: BrowserContext) -> AsyncIterator[ScriptedServer]:
    """A page that has just connected, and the server it talks to, played by the test."""
    server = await ScriptedServer.open(browser)
    yield server
    assert not server.complaints, "the page broke its policy or a script of its failed"
