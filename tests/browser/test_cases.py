"""The cases from public bug reports that need a browser which looks at the session."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import BrowserContext

from fabric.client import FabricClient
from tests.browser.real import Person
from tests.support.case_runner import CaseRun, StepResult
from tests.support.case_surface import ClientSurface
from tests.support.cases import Case, load_cases
from tests.support.chromium import screen_text
from tests.support.local_fabric import local_fabric

CASES = [case for case in load_cases() if any(tool.startswith("view.") for tool in case.tools)]
MARK = "nothing was written here"


class WatchedRun(CaseRun):
    """A run whose ``view.*`` steps are pages in a browser."""

    def __init__(self, case: Case, client: FabricClient, browser: BrowserContext) -> None:
        super().__init__(case, ClientSurface(client))
        self._client = client
        self._browser = browser
        self._people: dict[str, Person] = {}

    async def _view_attach(self, args: dict[str, Any], _: Any) -> StepResult:
        link = await self._client.view_ticket(self._id(args, "sessionId"))
        person = await Person.at(self._browser, link.url)
        await person.stands("Read only", "Connected")
        await person.page.evaluate(f"navigator.clipboard.writeText('{MARK}')")
        name = f"view{len(self._people)}"
        self._people[name] = person
        return StepResult(ids={"view": name})

    async def _view_detach(self, args: dict[str, Any], _: Any) -> StepResult:
        await self._person(args).page.close()
        return StepResult()

    async def _view_read(self, args: dict[str, Any], _: Any) -> StepResult:
        return StepResult(await screen_text(self._person(args).page))

    async def _view_clipboard(self, args: dict[str, Any], _: Any) -> StepResult:
        reading = self._person(args).page.evaluate("navigator.clipboard.readText()")
        text = await asyncio.wait_for(reading, 10)
        assert text == MARK, "the clipboard can be read here, so a write would have shown"
        return StepResult(text)

    def _person(self, args: dict[str, Any]) -> Person:
        return self._people[self._id(args, "viewId")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_case(case: Case, browser: BrowserContext):
    async with local_fabric() as fabric, fabric.client() as client:
        faults = await WatchedRun(case, client, browser).run()
        assert not faults, f"{case.fault}\n" + "\n".join(faults)


async def test_there_are_such_cases():
    assert len(CASES) == 3
