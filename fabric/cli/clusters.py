"""The cluster below a fabric, as the supervisor sees it: one it joins, or one of its own."""

import asyncio
from collections.abc import Callable

from fabric.cli.state import StateDir
from fabric.core.settings import Settings

_LOOK_EVERY_S = 1.0
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

    async def lost(self) -> None:
        """Return when the embedded cluster has died by itself; never for one that was joined."""
        from fabric.actors import cluster

        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            if self.embedded:
                found = await asyncio.to_thread(cluster.read, self._state.folder)
                if found is None or not found.is_alive:
                    return

    async def stop(self, progress: Progress) -> None:
        """End the embedded cluster and every session on it; one that was joined goes on.

        Raises: CleanupIncompleteError.
        """
        if self.embedded:
            await asyncio.to_thread(self._stop, progress)

    def _stop(self, progress: Progress) -> None:
        from fabric.actors import cluster
        from fabric.actors.leftovers import end_slots
        from fabric.actors.names import node_dirs

        progress("ending the cluster's processes")
        cluster.stop(self._state.folder)
        # No worker is left that would hold a shim: what the shims hold can be ended now.
        count = end_slots(node_dirs(self._state.folder), self._settings.worker.teardown)
        if count:
            progress(f"ended {count} terminals and idle shims")

    def kill(self) -> None:
        """End the embedded cluster's processes and sessions. Raises: CleanupIncompleteError."""
        if self.embedded:
            self._stop(lambda sentence: None)
