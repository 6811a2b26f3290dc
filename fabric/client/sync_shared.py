"""The shared terminal for the synchronous client."""

from fabric.client.shared import WAIT_S, SharedTerminal
from fabric.client.thread import LoopThread
from fabric.core.ids import RequestId
from fabric.core.model import SignalName
from fabric.core.shared import SharedPage, SharedResult


class SharedTerminalSync:
    """The one terminal an owner's model shares with a person; see ``SharedTerminal``."""

    def __init__(self, loop: LoopThread, shared: SharedTerminal) -> None:
        self._loop = loop
        self._shared = shared

    def send(
        self,
        text: str | bytes = "",
        *,
        submit: bool = True,
        wait_s: float = WAIT_S,
        request_id: RequestId | None = None,
    ) -> SharedResult:
        """Type text and wait. Raises: QueueFullError, QueueBlockedError, SessionExitedError, …"""
        work = self._shared.send(text, submit=submit, wait_s=wait_s, request_id=request_id)
        return self._loop.run(work)

    def read(self, offset: int = 0, count: int | None = None) -> SharedPage:
        """Return the screen and a page of the history above it; never waits for a turn."""
        return self._loop.run(self._shared.read(offset, count))

    def signal(
        self,
        name: SignalName | str,
        *,
        wait_s: float = WAIT_S,
        request_id: RequestId | None = None,
    ) -> SharedResult:
        """Signal the foreground group. Raises: SignalRefusedError, InvalidRequestError."""
        return self._loop.run(self._shared.signal(name, wait_s=wait_s, request_id=request_id))

    def reset(self, *, wait_s: float = WAIT_S, request_id: RequestId | None = None) -> SharedResult:
        """End the whole tree and start the next generation of the shell."""
        return self._loop.run(self._shared.reset(wait_s=wait_s, request_id=request_id))
