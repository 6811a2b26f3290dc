"""The cluster below a fabric, as the supervisor sees it.

A whole one of its own (``embedded``), one that others run, or one that others head and to
which this machine's Ray node is added (``cluster.address`` and ``cluster.node_ip``).
"""

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
        self._runs_ray = embedded or bool(settings.cluster.node_ip)
        self.address = "" if embedded else settings.cluster.address

    async def start(self, progress: Progress) -> None:
        """Start this machine's Ray node, or find the one that is there.

        Cancelling it waits until what was begun is complete, so that it can be ended.
        Raises: StartupTimeoutError, SessionStateError.
        """
        if not self._runs_ray:
            progress(f"joining the cluster at {self.address}")
            return
        where = (
            f"a Ray node that joins {self.address}"
            if not self.embedded
            else "a one-machine cluster"
        )
        if self.embedded and self._settings.cluster.node_ip:
            where = f"the head of a cluster on {self._settings.cluster.node_ip}"
        progress(f"starting {where}")
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
            # Whoever holds the state folder's lock is its only supervisor: a cluster that runs
            # here lost its own, and nobody would notice its death.
            replace_running=True,
            progress=progress,
        )
        self.address = self._settings.cluster.address or embedded.address

    async def lost(self) -> None:
        """Return when this machine's Ray node has died by itself; never for one of others."""
        from fabric.actors import cluster

        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            if self._runs_ray:
                found = await asyncio.to_thread(cluster.read, self._state.folder)
                if found is None or not found.is_alive:
                    return

    async def stop(self, progress: Progress) -> None:
        """End this machine's Ray node and every session on it; one of others goes on.

        Raises: CleanupIncompleteError.
        """
        if self._runs_ray or self._left_something():
            await asyncio.to_thread(self._stop, progress)

    def _left_something(self) -> bool:
        return (self._state.folder / "cluster.json").exists()

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
        """End this machine's Ray processes and sessions. Raises: CleanupIncompleteError."""
        if self._runs_ray:
            self._stop(lambda sentence: None)
