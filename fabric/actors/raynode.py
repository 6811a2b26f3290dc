"""One Ray node of an embedded cluster, as a program: ``python -m fabric.actors.raynode``.

It does what ``ray start --block`` does, with three differences that ``ray start`` has no
flags for: everything listens on one address, 127.0.0.1 by default, no helper processes
are started (see ``fabric.actors.idle_agent``), and the start is measured in one second
instead of five.
For that it uses Ray's own ``Node`` class, which is why the project pins Ray's minor version.

The one argument is JSON: ``head``, ``address`` (of a head, unless this is one), ``node_ip``
(of this node, "" for loopback), ``port`` (of a head, 0 for any), ``labels``,
``resources``, ``num_cpus``, ``object_store_bytes``, ``temp_dir``, ``session_name`` (null: Ray
gives it, or has it from Redis, whose address it has from the environment) and ``ready_file``,
which gets ``{"address", "pids"}`` once the node answers. The program ends when a process of
the node does, and its processes end with it, however it ends.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import ray._private.services as services
from ray._private.node import Node
from ray._private.parameter import RayParams
from ray._private.resource_isolation_config import ResourceIsolationConfig

LOOPBACK = "127.0.0.1"
WATCH_INTERVAL_S = 0.5
END_TIMEOUT_S = 3.0
_AGENTS = {
    "--dashboard_agent_command": (
        "metrics_agent_port", "-1", "metrics_export_port", "-1",
        "dashboard_agent_listen_port", "-1",
    ),
    "--runtime_env_agent_command": ("runtime_env_agent_port", "1"),
}  # fmt: skip


class LeanNode(Node):
    """A Ray node with a GCS server (on a head) and a raylet, and nothing else."""

    def start_head_processes(self) -> None:
        """Start the GCS server only."""
        self.start_gcs_server()  # type: ignore[no-untyped-call]
        self._write_cluster_info_to_kv()  # type: ignore[no-untyped-call]


def _lean_command(command: list[str]) -> list[str]:
    facts = dict(item.partition("=")[::2] for item in command)
    agent = Path(__file__).with_name("idle_agent.py")
    start = [sys.executable, "-I", "-S", str(agent), facts["--session_dir"], facts["--node_id"]]
    return [
        f"{name}={subprocess.list2cmdline([*start, *_AGENTS[name]])}" if name in _AGENTS else item
        for item in command
        for name in (item.partition("=")[0],)
    ]


def _with_idle_agents() -> None:
    start: Any = services.start_ray_process

    def start_lean(command: list[str], process_type: str, **options: Any) -> Any:
        if process_type == "raylet":
            command = _lean_command(command)
        return start(command, process_type, **options)

    vars(services)["start_ray_process"] = start_lean


def start(config: dict[str, Any]) -> LeanNode:
    """Start the node and wait until its raylet is registered."""
    _with_idle_agents()
    make: Any = RayParams
    params = make(
        gcs_address=config.get("address"),
        node_ip_address=config.get("node_ip") or LOOPBACK,
        node_name=config["labels"].get("ptyfabric.host"),
        num_cpus=config["num_cpus"],
        num_gpus=0,
        resources=config["resources"],
        labels=config["labels"],
        object_store_memory=config["object_store_bytes"],
        temp_dir=config["temp_dir"],
        session_name=config["session_name"] if config["head"] else None,
        gcs_server_port=config.get("port", 0) if config["head"] else None,
        dashboard_agent_listen_port=0,
        include_dashboard=False,
        include_log_monitor=False,
        no_monitor=True,
        resource_isolation_config=ResourceIsolationConfig(enable_resource_isolation=False),
    )
    return LeanNode(params, head=config["head"], shutdown_at_exit=False, spawn_reaper=True)


def processes(node: LeanNode) -> list[subprocess.Popen[bytes]]:
    """List the node's processes, the raylet first, since it ends its workers in order."""
    order = sorted(node.all_processes.items(), key=lambda item: item[0] != "raylet")
    return [info.process for _, infos in order for info in infos]


def end(node: LeanNode) -> None:
    """End the node's processes: asked first, then killed."""
    for process in processes(node):
        process.terminate()
        try:
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()


def main(argument: str) -> int:
    """Start, report, watch, end."""
    config = json.loads(argument)
    stopping = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    node = start(config)
    ready = Path(config["ready_file"])
    spare = ready.with_suffix(".new")
    pids = [os.getpid(), *(process.pid for process in processes(node))]
    spare.write_text(json.dumps({"address": node.gcs_address, "pids": pids}))
    spare.replace(ready)
    while not stopping and all(process.poll() is None for process in processes(node)):
        time.sleep(WATCH_INTERVAL_S)
    end(node)
    return 0 if stopping else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
