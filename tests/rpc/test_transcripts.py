"""The whole record of an agent's work: what a model did, what the terminal showed, no secrets."""

import json
import time

import pytest

from fabric.cli.main import main
from tests.support.local_fabric import local_fabric

PASSWORD = "correct horse battery"
AMBIENT = "ambient-api-key-value"


@pytest.fixture
async def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SERVICE_API_KEY", AMBIENT)
    return tmp_path / "transcripts"


async def call(client, tool, /, **arguments):
    return await client.call_tool(tool, arguments)


async def test_calls_and_output_are_recorded_without_passwords_and_credentials(folder, capsys):
    async with (
        local_fabric(
            worker__transcript__dir=str(folder), worker__readiness__idle_silence_s="0.3"
        ) as fabric,
        fabric.client() as client,
    ):
        opened = await call(client, "terminal_open", type="shell", name="main")
        session = opened.value["sessionId"]
        await call(client, "terminal_send", sessionId=session, text="echo shown-$((6*7))")
        await call(client, "terminal_send", sessionId=session, text=f"echo {AMBIENT}")
        asked = await call(
            client, "terminal_send", sessionId=session, text="read -rsp 'Password: ' P; echo"
        )
        assert asked.value["promptKind"] == "password"
        await call(client, "terminal_send", sessionId=session, text=PASSWORD)
        await call(client, "terminal_send", sessionId=session, text="echo ${#P}")
        # Typed while the program is quiet: nobody can know whether it shows.
        quiet = await call(client, "terminal_send", sessionId=session, text="sleep 1")
        assert quiet.value["waitReason"] == "inferred_idle"
        await call(client, "terminal_send", sessionId=session, text="perhaps-secret")
        await call(client, "terminal_send", sessionId=session, text=1)
        await client.list_tools()
        owner = client.owner.owner_id
    names = sorted(path.name for path in (folder / owner).iterdir())
    assert names == ["calls-local.jsonl", f"{session}.cast"]
    everything = "".join(path.read_text() for path in (folder / owner).iterdir())
    assert PASSWORD not in everything
    assert AMBIENT not in everything
    rows = [json.loads(line) for line in (folder / owner / names[0]).read_text().splitlines()]
    assert [row["tool"] for row in rows] == ["terminal_open"] + ["terminal_send"] * 8
    assert rows[0]["result"].startswith(f"started terminal session {session} (main)")
    assert rows[1]["arguments"]["text"] == "echo shown-$((6*7))"
    assert rows[1]["result"].endswith("[wait: stdin_read]\n[session: running]")
    assert rows[2]["arguments"]["text"] == "echo ***"
    assert "not recorded" in rows[4]["arguments"]["text"]
    assert rows[5]["arguments"]["text"] == "echo ${#P}"
    assert f"\n{len(PASSWORD)}\n" in rows[5]["result"]
    assert "not recorded" in rows[7]["arguments"]["text"]
    assert rows[8]["error"] == "INVALID_ARGS"
    assert all(row["owner"] == owner and row["at"] <= time.time() for row in rows)
    assert main(["replay", "--no-wait", str(folder / owner / names[1])]) == 0
    played = capsys.readouterr().out
    assert "shown-42\r\n" in played
    assert "Password: " in played


async def test_a_withheld_text_does_not_come_back_as_the_label_of_a_task(folder):
    async with (
        local_fabric(worker__transcript__dir=str(folder)) as fabric,
        fabric.client() as client,
    ):
        opened = await call(client, "terminal_open", type="shell")
        session = opened.value["sessionId"]
        await call(client, "terminal_send", sessionId=session, text="read -rs P")
        await call(
            client, "terminal_send", sessionId=session, text=PASSWORD, run_in_background=True
        )
        listed = await call(client, "task_list")
        assert PASSWORD in listed.text
    text = "".join(path.read_text() for path in folder.glob("*/*"))
    assert "task_list" in text
    assert PASSWORD not in text


async def test_a_full_file_is_followed_by_another(folder):
    async with (
        local_fabric(
            worker__transcript__dir=str(folder), worker__transcript__max_file_bytes="600"
        ) as fabric,
        fabric.client() as client,
    ):
        for _ in range(6):
            await call(client, "terminal_list")
    files = list(folder.glob("*/calls-local*.jsonl"))
    assert len(files) > 1
    assert all(path.stat().st_size <= 600 for path in files)
    assert sum(len(path.read_text().splitlines()) for path in files) == 6


async def test_off_by_default(tmp_path):
    async with local_fabric() as fabric, fabric.client() as client:
        session = (await call(client, "terminal_open", type="shell")).value["sessionId"]
        assert fabric.gateway._record is None
        assert all(
            worker.session is None or worker.session.recording is None
            for worker in fabric.slots.workers.values()
        )
        await call(client, "terminal_close", sessionId=session)
