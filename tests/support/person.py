"""A person at a PTY: what the command prints, what is on the screen, how it ends."""

import asyncio
import os
import termios

import pyte

from tests.support.eventually import eventually


class Person:
    """Somebody at a terminal that runs a command of ours."""

    def __init__(self, process, master, rows, cols):
        self.process, self.master = process, master
        self.before = termios.tcgetattr(master)
        self.raw = bytearray()
        self.screen = pyte.Screen(cols, rows)
        self._stream = pyte.ByteStream(self.screen)
        os.set_blocking(master, False)
        asyncio.get_running_loop().add_reader(master, self._read)

    def _read(self):
        try:
            data = os.read(self.master, 65_536)
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self.master)
            return
        self.raw += data
        self._stream.feed(data)

    def type(self, data):
        os.write(self.master, data)

    async def sees(self, text):
        await eventually(lambda: text in "\n".join(self.screen.display), 15, f"{text!r} shown")

    async def prints(self, text):
        await eventually(lambda: text in self.raw, 15, f"{text!r} printed")

    @property
    def is_raw(self):
        return not termios.tcgetattr(self.master)[3] & termios.ICANON

    async def ended(self):
        await eventually(lambda: self.process.poll() is not None, 15, "the command ended")
        return self.process.returncode

    def close(self):
        asyncio.get_running_loop().remove_reader(self.master)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
