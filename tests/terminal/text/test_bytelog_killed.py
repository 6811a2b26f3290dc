"""A writer that is killed at any moment leaves a log that offers only what was written."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.eventually import eventually_sync
from workers.text.bytelog import ByteLog

SIZE = 1 << 20
PERIOD = 65_521
PATTERN = bytes(n * 7 % 256 ^ n // 256 for n in range(PERIOD))
WRITER = """
import sys
from workers.text.bytelog import ByteLog
period, pattern = %d, bytes(n * 7 %% 256 ^ n // 256 for n in range(%d))
log = ByteLog(int(sys.argv[1]), 1)
long = pattern * 20
step = 1
while True:
    begin = log.next_offset %% period
    step = step * 37 %% 900_001 + 1
    log.append(long[begin : begin + step])
"""

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs memfd")


def expected(offset: int, count: int) -> bytes:
    begin = offset % PERIOD
    return (PATTERN * (count // PERIOD + 2))[begin : begin + count]


def test_a_killed_writer_leaves_a_log_that_is_right():
    fd = os.memfd_create("killed", os.MFD_CLOEXEC)
    log = ByteLog(fd, SIZE)
    moment = random.Random(7)
    try:
        for _ in range(25):
            before = log.next_offset
            writer = subprocess.Popen(
                [sys.executable, "-c", WRITER % (PERIOD, PERIOD), str(fd)],
                pass_fds=[fd],
                env={"PYTHONPATH": str(Path(__file__).parents[3])},
            )
            goal = before + moment.randrange(1, 40 * SIZE)
            try:
                eventually_sync(lambda goal=goal: log.next_offset >= goal, within=20)
            finally:
                writer.send_signal(signal.SIGKILL)
                writer.wait()
            first, end = log.first_offset, log.next_offset
            assert 0 < end - first <= SIZE
            assert log.read(first, SIZE)[1] == expected(first, end - first)
    finally:
        log.close()
        os.close(fd)
