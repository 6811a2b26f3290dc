"""The cluster below a fabric, as the supervisor sees it: one it joins, or one of its own."""

import asyncio
from collections.abc import Callable

from fabric.cli.state import StateDir
from fabric.core.settings import Settings

Progress = Callable[[str], None]


class Cluster:
    """Start, stop and name a cluster. Ray is imported only where it is needed."""

    def __init__(self, settings: Settings, state: StateDir, *, embedded: bool) -> None:
        self._settings = settings
        self._state = state
        self.embedded = embedded
        self.address = "" if embedded else settings.cluster.address

    async def start(self, progress: Progress) -> None:
        """Start the embedded cluster, or find the one to join.

        Cancelling it waits until what was begun is complete, so that it can be ended.
        Raises: StartupTimeoutError, SessionStateError.
        """
        if not self.embedded:
            progress(f"joining the cluster at {self.address}")
            return
        progress("starting a one-machine cluster")
        work = asyncio.ensure_future(asyncio.to_thread(self._start, progress))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait({work})
            raise

    def _start(self, progress: Progress) -> None:
        from fabric.actors import cluster

        node = self._settings.node
        embedded = cluster.start(
            self._settings.cluster,
            self._state.folder,
            sessions=node.max_sessions,
            starting=node.max_starting,
            progress=progress,
        )
        self.address = embedded.address

    async def stop(self, progress: Progress) -> None:
        """End the embedded cluster; one that was joined goes on.

        Raises: CleanupIncompleteError.
        """
        if self.embedded:
            await asyncio.to_thread(self.kill)

    def kill(self) -> None:
        """End the embedded cluster's processes. Raises: CleanupIncompleteError."""
        from fabric.actors import cluster

        if self.embedded:
            cluster.stop(self._state.folder)
