"""The first output of a session belongs to its open, however late the worker looks."""

import select
from pathlib import Path

from tests.support.eventually import scaled
from tests.support.local_worker import worker_in
from workers import launching


async def test_a_prompt_that_came_before_the_watch_began_is_the_first_output(
    tmp_path: Path, monkeypatch
):
    begin = launching._become_ready

    async def late(session, spec):
        # The loop is busy while the shell starts: its prompt is there before anybody looks.
        assert select.select([session.parts.spawned.master_fd], [], [], scaled(5.0))[0]
        return await begin(session, spec)

    monkeypatch.setattr(launching, "_become_ready", late)
    async with worker_in(tmp_path) as terminal:
        assert (await terminal.open()).motd == "$ "
