"""The SDK's own client drives the fabric: both transports, both eras of the protocol."""

import asyncio
import contextlib

import pytest

from tests.support.eventually import eventually


def driven(facts, era):
    """What a model did and saw."""
    assert facts["era"] < "2026" if era == "legacy" else facts["era"] >= "2026"
    assert "inferred_idle" in facts["instructions"]
    tools = facts["tools"]
    assert list(tools)[:2] == ["terminal_open", "terminal_send"]
    assert all(tool["closed"] and tool["value"] for tool in tools.values())
    assert tools["terminal_read"]["read_only"]
    assert tools["terminal_close"]["destructive"]
    assert not tools["terminal_send"]["read_only"]
    session = facts["opened"]["value"]["sessionId"]
    assert facts["opened"]["text"] == f"started terminal session {session} (main) [type: shell]\n$ "
    sent = facts["sent"]
    assert sent["blocks"] == 1
    assert sent["text"].endswith("\n42\n$ \n[wait: stdin_read]\n[session: running]")
    assert sent["value"]["waitReason"] == "stdin_read"
    assert sent["card"]["card"] == "terminal"
    assert sent["card"]["description"] == f"Terminal {session}"
    waited = [done for done, _ in facts["progress"]]
    assert len(waited) >= 2
    assert waited == sorted(waited)
    assert facts["read"]["text"].endswith("[lines: 0-3 of 3]")
    assert session in facts["list"]["text"]
    assert facts["close"]["text"] == f"closed terminal session {session}"
    assert facts["wrong"]["error"]
    assert facts["wrong"]["value"]["error"]["reason"] == "INVALID_ARGS"
    assert facts["unknown"]["value"]["error"]["reason"] == "UNKNOWN_TOOL"


def cancelled(facts):
    """A send that was given up left the shell free, and its status tells of the interrupt."""
    assert facts["cancelled"]
    assert "s=130" in facts["text"]
    assert facts["text"].endswith("[wait: stdin_read]\n[session: running]")


def noticed(facts, era):
    """The end of a background send was told, once, without being asked."""
    notice = facts["record"]["notice"]
    assert notice.startswith(f"background task {facts['task']} (pty-send: ")
    assert notice.endswith("finished [status: completed, wait: stdin_read]. "
                           "Read its output with task_output.")  # fmt: skip
    assert facts["messages"] == ([["notice", notice]] if era == "legacy" else [])
    assert facts["updated"]
    assert facts["listed"]
    assert "end-16" in facts["output"]  # reading the resource did not take it
    assert facts["missing"] == "no such resource: fabric://tasks/tsk_nonsense"


@pytest.mark.parametrize("era", ["legacy", "auto"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_client_drives_cancels_and_is_told(extra, local, transport, era):
    serving = extra.serving() if transport == "http" else contextlib.nullcontext("")
    async with serving as url:
        names = ("drive", "cancel", "notice")
        runs = [extra.scenario(name, transport, era, url) for name in names]
        drive, cancel, notice = await asyncio.gather(*runs)
    driven(drive, era)
    cancelled(cancel)
    noticed(notice, era)
    if (transport, era) != ("http", "auto"):  # there nobody can tell that a client has left
        await eventually(lambda: not local.node._sessions, within=10)


async def test_connections_are_owners_of_their_own_and_a_named_agent_is_one(extra):
    async with extra.serving() as url:
        facts = await extra.scenario("owners", "http", "legacy", url)
        assert facts["two_sees"] == "(no terminal sessions)"
        assert facts["session"] in facts["alice_sees"]
        later = await extra.scenario("owners", "http", "auto", url)
        assert facts["session"] in later["alice_sees"]  # without sessions, the name still holds


async def test_an_idle_owner_of_http_is_given_up_with_its_terminals(extra, local):
    async with extra.serving("--idle", "1") as url:
        await extra.scenario("owners", "http", "auto", url)
        await eventually(lambda: not local.node._sessions, within=15)
