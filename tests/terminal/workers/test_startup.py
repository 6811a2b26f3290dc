"""The first output of a session belongs to its open, however late the worker looks."""

import time
from pathlib import Path

from tests.support.eventually import scaled
from tests.support.local_worker import worker_in
from workers import launching

MANY_TIMES_A_START_S = 0.5


async def test_a_prompt_that_came_before_the_watch_began_is_the_first_output(
    tmp_path: Path, monkeypatch
):
    begin = launching._become_ready

    async def late(*given):
        time.sleep(scaled(MANY_TIMES_A_START_S))  # noqa: ASYNC251  (a busy loop is the case)
        return await begin(*given)

    monkeypatch.setattr(launching, "_become_ready", late)
    async with worker_in(tmp_path) as terminal:
        assert (await terminal.open()).motd == "$ "
