"""The command that gives a person a link."""

import argparse
import io
import stat

import pytest

from fabric.cli import view as command
from fabric.cli.connect import connected
from fabric.cli.context import Context
from fabric.cli.output import Output
from fabric.core.errors import FabricError, InvalidRequestError
from fabric.core.model import SandboxMode
from tests.support.local_fabric import local_fabric
from tests.support.page import page


@pytest.fixture
async def local():
    async with local_fabric(node__warm_sessions="1") as fabric:
        yield fabric


@pytest.fixture
def run(local, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(command.webbrowser, "open", opened.append)

    async def run(*, display=False, **given):
        out = io.StringIO()
        facts = {
            "session": None,
            "agent": "cli",
            "overview": False,
            "read_only": False,
            "no_open": False,
        } | given
        arguments = argparse.Namespace(state_dir=str(tmp_path / "state"), **facts)
        output = Output(quiet=True, stdout=out, stderr=io.StringIO(), environ={})
        environ = {"FABRIC_GATEWAY": local.address} | ({"DISPLAY": ":1"} if display else {})
        context = Context(arguments, output, environ)
        async with connected(context, SandboxMode.DANGER_FULL_ACCESS) as client:
            command.show(context, await command.ask(client, arguments))
        return out.getvalue().strip()

    run.opened = opened
    run.folder = tmp_path / "state"
    return run


async def test_the_link_leads_to_the_shared_terminal(run):
    async with page(await run()) as view:
        assert (await view.until("attached"))["role"] == "controller"
    assert run.opened == []


async def test_the_list_and_a_view_that_only_reads(run):
    async with page(await run(overview=True)) as view:
        assert (await view.until("attached"))["kind"] == "overview"
        assert (await view.until("sessions"))["sessions"] == []
    async with page(await run(read_only=True)) as view:
        assert (await view.until("attached"))["role"] == "readonly"


async def test_a_browser_is_led_there_by_a_file_of_this_users(run):
    url = await run(display=True)
    assert len(run.opened) == 1
    assert "#t=" not in run.opened[0]
    (path,) = run.folder.glob("view-*.html")
    assert path.as_uri() == run.opened[0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert url in path.read_text()


async def test_what_it_cannot_show_it_says(run):
    with pytest.raises(InvalidRequestError):
        await run(session="x", overview=True)
    with pytest.raises(FabricError, match="no session named"):
        await run(session="nobody")
