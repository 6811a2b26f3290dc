"""The environment of everything that runs Ray, and joining a cluster as a driver.

Ray reads most of its flags from the environment, some of them while it is imported, so
``import ray`` comes after them and nowhere at the top of a module that the command line
imports (it also costs most of a second).
"""

import ipaddress
import logging
import os
import socket
from dataclasses import dataclass
from typing import Any

from fabric.core.errors import InvalidRequestError, RegistryUnavailableError
from fabric.core.ids import HostName
from fabric.core.settings import ClusterSettings

CONNECT_TIMEOUT_S = 5.0
_CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"

FLAGS = {
    # Shells inherit niceness and oom_score_adj from their worker's tree.
    "RAY_worker_niceness": "0",
    "RAY_worker_oom_score_adjustment": "0",
    # Ray must not kill sessions for the memory of others; limits are the sandbox's.
    "RAY_memory_monitor_refresh_ms": "0",
    # A node that answers nothing is dead for Ray after (2 + 4) * 5 s; the default takes 65 s,
    # and less would declare busy machines dead, which ends every worker there.
    "RAY_health_check_period_ms": "2000",
    "RAY_health_check_timeout_ms": "4000",
    "RAY_health_check_failure_threshold": "5",
    # A third of what an idle worker costs.
    "RAY_event_stats": "0",
    "RAY_task_events_report_interval_ms": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ROTATION_MAX_BYTES": "4194304",
    "RAY_ROTATION_BACKUP_COUNT": "2",
    "RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL": "minor",
}


@dataclass(frozen=True, slots=True)
class Membership:
    """This process as a driver of a cluster: its namespace and the node it is on."""

    address: str
    namespace: str
    host: HostName


def daemon_environment(
    token_file: str, temp_dir: str, node_ip: str = "", *, redis: str = "", storage: str = ""
) -> dict[str, str]:
    """The environment of a Ray node of ours: this one without foreign Ray settings, and the flags.

    ``temp_dir`` tells a node's sandbox which folder of Ray's to hide; ``node_ip`` "" means
    that the node is reached on this machine only. ``redis`` is where a head keeps its state,
    under the name ``storage``. No password goes with it: Ray would show it in the command
    line of its GCS, so that Redis belongs on the head's loopback or behind a firewall.
    """
    env = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    return (
        env
        | FLAGS
        | _auth(token_file)
        | {
            _CLUSTERS: "1" if node_ip else "0",
            "RAY_TMPDIR": temp_dir,
        }
        | ({"RAY_REDIS_ADDRESS": redis, "RAY_external_storage_namespace": storage} if redis else {})
    )


def join(
    settings: ClusterSettings, address: str, *, token_file: str = "", host: str = ""
) -> Membership:
    """Make this process a driver of the cluster at ``address`` (``ip:port``); blocks a second.

    Without ``token_file`` Ray's own settings (``RAY_AUTH_MODE`` and so on) hold.
    Raises: InvalidRequestError, RegistryUnavailableError.
    """
    loopback = _check(address)
    os.environ.update(FLAGS)
    if token_file:
        os.environ.update(_auth(token_file))
    # Off, Ray leaves 127.0.0.1 alone instead of turning it into the machine's address;
    # on, it lets a Mac join a cluster of several machines.
    os.environ[_CLUSTERS] = "0" if loopback else "1"

    import ray
    import ray._private.ray_constants as constants
    import ray._private.worker as worker

    constants.ENABLE_RAY_CLUSTER = not loopback
    vars(worker)["_worker_logs_enabled"] = False  # else Ray's messages go to standard output
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        ray.init(
            address=address,
            namespace=settings.namespace,
            log_to_driver=False,
            configure_logging=False,
        )
    except (ConnectionError, RuntimeError) as error:
        raise RegistryUnavailableError(
            f"the Ray cluster at {address} did not accept this process;"
            " check that its token and its version are the same here",
            address=address,
        ) from error
    name = host or settings.host or _host_here()
    return Membership(address, settings.namespace, HostName(name))


def leave() -> None:
    """Stop being a driver; detached actors stay."""
    import ray

    ray.shutdown()


def _auth(token_file: str) -> dict[str, str]:
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": token_file}


def _check(address: str) -> bool:
    """Tell whether the address is on this machine, after something answered there."""
    name, _, port = address.rpartition(":")
    if not name or not port.isdigit():
        raise InvalidRequestError(
            f"cluster address {address!r} must read host:port", field="cluster.address"
        )
    try:
        with socket.create_connection((name, int(port)), CONNECT_TIMEOUT_S) as connection:
            peer = connection.getpeername()[0]
    except OSError as error:
        raise RegistryUnavailableError(
            f"no Ray cluster answers at {address} ({error.strerror or error})", address=address
        ) from error
    return ipaddress.ip_address(peer).is_loopback


def labels_here() -> dict[str, str]:
    """Return the labels of the Ray node this process is on."""
    import ray

    node_id = ray.get_runtime_context().get_node_id()
    found = [node["Labels"] for node in ray_nodes() if node["NodeID"] == node_id]
    return found[0] if found else {}


def ray_nodes() -> list[dict[str, Any]]:
    """List the nodes of the cluster, dead ones too, as Ray describes them; blocks on the GCS."""
    import ray

    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return nodes


def _host_here() -> str:
    label = labels_here().get("ptyfabric.host", "")
    if not label:
        raise InvalidRequestError(
            "the Ray node on this machine has no label ptyfabric.host; start it with"
            ' --labels "ptyfabric.host=<name>,ptyfabric.os=linux,ptyfabric.arch=x86_64"',
            field="cluster.address",
        )
    return label
