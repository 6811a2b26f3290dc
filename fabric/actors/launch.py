"""Plain classes become Ray actors here, at the last moment, and get their place.

All are detached and named, restart for ever, never repeat a call by themselves
(``max_task_retries`` 0: a repeated call would run twice) and are pinned by the label
``ptyfabric.host``. Ray's soft affinity is ignored for actors without CPUs, and hard
affinity does not survive a node that comes back under a new id. None has a
``runtime_env``: it would bypass every warm process.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

from fabric.actors.handles import ActorHandle
from fabric.actors.labels import LABEL_HOST, PTY_RESOURCE
from fabric.actors.names import REGISTRY, node_name
from fabric.actors.plan import Plan
from fabric.actors.rayenv import ray_nodes
from fabric.core.errors import (
    FabricError,
    InvalidRequestError,
    RegistryUnavailableError,
    StartupTimeoutError,
)
from fabric.core.ids import HostName, SlotId
from fabric.core.neighbours import refuse_the_ssh_library
from workers.slot import SlotConfig

_log = logging.getLogger(__name__)
Progress = Callable[[str], None]
_HEAD = "node:__internal_head__"
_LASTING: dict[str, Any] = {
    "num_cpus": 0,
    "lifetime": "detached",
    "max_restarts": -1,
    "max_task_retries": 0,
    "enable_task_events": False,
}
# A call of the node or the registry waits for others; none may wait for a free place.
_CALLS_AT_ONCE = 10_000


def alive_hosts() -> dict[HostName, dict[str, Any]]:
    """Return the living Ray nodes that carry a host label; blocks on the GCS."""
    found: dict[HostName, dict[str, Any]] = {}
    for node in ray_nodes():
        host = node["Labels"].get(LABEL_HOST)
        if node["Alive"] and host:
            found[HostName(host)] = node
    return found


def start_registry(plan: Plan) -> None:
    """Start the registry actor on the head, or find it; blocks on the GCS."""
    import ray

    from fabric.actors.registry_host import RegistryHost

    heads = [host for host, node in alive_hosts().items() if _HEAD in node["Resources"]]
    if not heads:
        raise InvalidRequestError(
            f"the head of the Ray cluster has no label {LABEL_HOST}; the registry needs one"
        )
    actor: Any = ray.remote(RegistryHost)
    actor.options(
        **_LASTING,
        name=REGISTRY,
        namespace=plan.namespace,
        get_if_exists=True,
        label_selector={LABEL_HOST: heads[0]},
        max_concurrency=_CALLS_AT_ONCE,
    ).remote(plan)


def start_node(plan: Plan, host: HostName) -> None:
    """Start the node actor of a host, or find it; blocks on the GCS."""
    import ray

    from fabric.actors.node_host import NodeHost

    actor: Any = ray.remote(NodeHost)
    actor.options(
        **_LASTING,
        name=node_name(host),
        namespace=plan.namespace,
        get_if_exists=True,
        label_selector={LABEL_HOST: host},
        max_concurrency=_CALLS_AT_ONCE,
    ).remote(plan, host)


async def ensure_fabric(plan: Plan, *, progress: Progress = lambda sentence: None) -> None:
    """Start what the fabric lacks: the registry, and a node actor on every labelled node.

    Safe to call from many gateways at once: an actor's name exists once. Returns when
    all of them answer. Raises: InvalidRequestError, RegistryUnavailableError, and what
    keeps the registry or the node from starting.
    """
    refuse_the_ssh_library()
    limit_s = plan.settings.cluster.start_timeout_s
    hosts = await _bounded(limit_s, asyncio.to_thread(alive_hosts))
    progress("starting the registry and the node actors")
    starts = [asyncio.to_thread(start_node, plan, host) for host in hosts]
    await _bounded(limit_s, asyncio.gather(asyncio.to_thread(start_registry, plan), *starts))
    names = [REGISTRY, *(node_name(host) for host in hosts)]
    await asyncio.gather(*(_handle(plan, name).ready(limit_s) for name in names))


def _handle(plan: Plan, name: str) -> ActorHandle:
    return ActorHandle(
        name, plan.namespace, lambda why: RegistryUnavailableError(f"actor {name}: {why}")
    )


async def _bounded(limit_s: float, work: Any) -> Any:
    try:
        async with asyncio.timeout(limit_s):
            return await work
    except TimeoutError as error:
        raise RegistryUnavailableError("the Ray cluster does not answer") from error


class RaySlots:
    """Starts and ends session workers as Ray actors, named by their slot."""

    def __init__(self, plan: Plan, host: HostName) -> None:
        self._plan = plan
        self._host = host

    async def create(self, config: SlotConfig) -> None:
        """Start the slot's worker, or find it, and wait until it serves.

        The caller bounds the wait: without room Ray would let an actor wait for ever.
        Raises: StartupTimeoutError, or what the worker raises.
        """
        await self._ray(self._submit, config)
        name = config.slot_id
        handle = ActorHandle(name, self._plan.namespace, self._away)
        await handle.ready(self._plan.settings.node.start_timeout_s)

    async def destroy(self, slot_id: SlotId) -> None:
        """End the slot's worker and forget its name, so that Ray does not start it again."""
        await self._ray(self._kill, slot_id)

    async def _ray(self, work: Callable[[Any], None], argument: object) -> None:
        try:
            await asyncio.to_thread(work, argument)
        except Exception as error:
            _log.exception("ray refused", extra={"host": self._host})
            raise RegistryUnavailableError(
                f"Ray on {self._host} does not do it: {type(error).__name__}", host=self._host
            ) from error

    def _submit(self, config: SlotConfig) -> None:
        import ray

        from fabric.actors.session_host import SessionHost

        wrap: Any = ray.remote(concurrency_groups={"ctl": 2})  # type: ignore[call-overload]
        mark: Any = ray.method(concurrency_group="ctl")
        mark(SessionHost.ready)  # answered while a call of the default group runs
        wrap(SessionHost).options(
            **_LASTING,
            name=config.slot_id,
            namespace=self._plan.namespace,
            get_if_exists=True,
            resources={PTY_RESOURCE: 1},
            label_selector={LABEL_HOST: self._host},
        ).remote(
            config,
            self._plan.worker,
            self._plan.settings.log.level,
            self._plan.settings.trace,
            self._plan.settings.metrics.ray,
        )

    def _kill(self, slot_id: SlotId) -> None:
        import ray

        with contextlib.suppress(ValueError):  # none of this name
            ray.kill(ray.get_actor(slot_id, self._plan.namespace), no_restart=True)

    def _away(self, why: str) -> FabricError:
        return StartupTimeoutError(f"the session worker did not come up: {why}", host=self._host)
