"""An embedded Ray cluster on this machine: started, found again, and ended exactly.

What belongs to a cluster is known in two ways: the pids and start times written into
``<state_dir>/cluster.json``, and a random mark in the environment of everything the
cluster starts. So ``stop`` ends its own processes and no others, from another process and
also after the starter was killed; ``ray stop``, which ends every Ray of the machine, is
never used.
"""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from fabric.actors.labels import LABEL_HOST, PTY_RESOURCE, node_labels, this_host
from fabric.actors.leftovers import end_slots
from fabric.actors.names import node_dirs
from fabric.actors.rayenv import daemon_environment
from fabric.core.errors import (
    CleanupIncompleteError,
    InvalidRequestError,
    SessionStateError,
    StartupTimeoutError,
)
from fabric.core.settings import ClusterSettings, SandboxSettings, TeardownSettings
from workers.sandbox.probe import probe_now

MARK = "FABRIC_CLUSTER_MARK"
STARTER = "fabric.actors.raynode"
# Left for the registry, the node actor and what Ray prestarts for the first driver.
MIN_CPUS = 2
POLL_S = 0.02
ASKED_GRACE_S = 3.0
KILLED_GRACE_S = 5.0
Progress = Callable[[str], None]
# Starters are this process's children: kept, so that they are reaped when they have ended.
_children: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True, slots=True)
class Member:
    """One process: a reused pid has another start time."""

    pid: int
    started: float

    def alive(self) -> psutil.Process | None:
        """Return the process if it is still this one and no zombie."""
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < 0.02
            if same and process.status() != psutil.STATUS_ZOMBIE:
                return process
        return None


@dataclass(frozen=True, slots=True)
class Embedded:
    """A running embedded cluster; what ``cluster.json`` holds."""

    mark: str
    temp_dir: str
    token_file: str
    address: str = ""
    host: str = ""
    members: tuple[Member, ...] = ()
    starter: Member | None = None
    version: int = field(default=1)

    @property
    def is_alive(self) -> bool:
        """Tell whether the head of the cluster runs."""
        return self.starter is not None and self.starter.alive() is not None


def ensure_token(path: Path) -> Path:
    """Make the cluster's secret, readable by this user only, unless it is there."""
    with contextlib.suppress(FileExistsError):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w") as out:
            out.write(secrets.token_hex(32))
    path.chmod(0o600)
    return path


def read(state_dir: Path) -> Embedded | None:
    """Return the cluster recorded in the state folder, running or not."""
    try:
        row: Any = json.loads((state_dir / "cluster.json").read_text())
        members = tuple(Member(**item) for item in row.pop("members"))
        starter = row.pop("starter")
        return Embedded(**row, members=members, starter=Member(**starter) if starter else None)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidRequestError(
            f"{state_dir / 'cluster.json'} is damaged ({error}); remove it after checking that"
            " no process of the cluster is left",
            field="state_dir",
        ) from error


def token_for(state_dir: Path, address: str) -> str:
    """Return the token file of the embedded cluster at ``address``, "" for any other cluster."""
    cluster = read(state_dir)
    return cluster.token_file if cluster is not None and cluster.address == address else ""


def start(
    settings: ClusterSettings,
    state_dir: Path,
    *,
    sessions: int,
    starting: int = 2,
    replace_running: bool = False,
    progress: Progress = lambda sentence: None,
) -> Embedded:
    """Start a Ray node with room for ``sessions``; return when it answers.

    It is the head of a cluster of its own, or with ``settings.address`` one more node of
    the cluster there. Blocks for one to a few seconds. What an earlier cluster of this
    state folder left is ended first, and with ``replace_running`` also one that runs: its
    shims keep its sessions. Raises: SessionStateError (one runs here already),
    StartupTimeoutError.
    """
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    state_dir.chmod(0o700)
    with _locked(state_dir):
        found = read(state_dir)
        if found is not None and found.is_alive and not replace_running:
            raise SessionStateError(
                f"a cluster of {state_dir} is running already at {found.address}",
                state_dir=state_dir,
                address=found.address,
            )
        if found is not None:
            progress("removing what an earlier cluster left")
            _end(found, state_dir)
        token = ensure_token(state_dir / "ray.token")
        # Short, because Ray puts sockets some 70 characters below it.
        temp_dir = tempfile.mkdtemp(prefix="pf-", dir="/tmp")
        cluster = Embedded(secrets.token_hex(8), temp_dir, str(token), host=this_host(settings))
        _write(state_dir, cluster)
        try:
            return _start_node(cluster, settings, state_dir, sessions, starting, progress)
        except BaseException:
            _end(read(state_dir) or cluster, state_dir)
            raise


def add_node(
    cluster: Embedded,
    settings: ClusterSettings,
    state_dir: Path,
    host: str,
    *,
    sessions: int,
    labels: dict[str, str] | None = None,
) -> Embedded:
    """Start one more node of the cluster on this machine, under another host name.

    Raises: StartupTimeoutError.
    """
    with _locked(state_dir):
        config = _node_config(cluster, settings, host, sessions, MIN_CPUS)
        config["labels"].update(labels or {})
        config["address"] = cluster.address
        ready = _launch(cluster, config, settings.start_timeout_s, state_dir, lambda _: None)
        cluster = read(state_dir) or cluster
        cluster = replace(cluster, members=(*cluster.members, *_members(ready["pids"])))
        _write(state_dir, cluster)
        return cluster


def stop(state_dir: Path, teardown: TeardownSettings | None = None) -> int:
    """End every process of the state folder's cluster; return how many were Ray's.

    Then the sessions that are still open, through their shims, with the graces of
    ``teardown``. Blocks. Raises: SessionStateError (a start or stop is under way),
    CleanupIncompleteError.
    """
    if not state_dir.is_dir():
        return 0
    with _locked(state_dir):
        cluster = read(state_dir)
        count = 0 if cluster is None else _end(cluster, state_dir)
        end_slots(node_dirs(state_dir), teardown or TeardownSettings())
        return count


def _start_node(
    cluster: Embedded,
    settings: ClusterSettings,
    state_dir: Path,
    sessions: int,
    starting: int,
    progress: Progress,
) -> Embedded:
    config = _node_config(cluster, settings, cluster.host, sessions, max(MIN_CPUS, starting))
    config.update(node_ip=settings.node_ip, port=settings.port)
    if settings.address:
        config.update(address=settings.address)
    else:
        # A head that finds its state again goes by the name it had; Ray knows it from there.
        name = None if settings.redis_address else f"session_{cluster.mark}"
        config.update(head=True, session_name=name, redis=settings.redis_address)
        config.update(storage=settings.namespace)
    ready = _launch(cluster, config, settings.start_timeout_s, state_dir, progress)
    members = _members(ready["pids"])
    cluster = replace(cluster, address=ready["address"], members=members, starter=members[0])
    _write(state_dir, cluster)
    return cluster


def _node_config(
    cluster: Embedded, settings: ClusterSettings, host: str, sessions: int, cpus: int
) -> dict[str, Any]:
    folder = Path(cluster.temp_dir) / secrets.token_hex(2)
    folder.mkdir(mode=0o700)
    return {
        "head": False,
        "labels": node_labels(host, probe_now(SandboxSettings(), host).kinds),
        "resources": {PTY_RESOURCE: sessions},
        "num_cpus": cpus,
        "object_store_bytes": settings.object_store_bytes,
        "temp_dir": str(folder),
        "ready_file": str(folder / "ready.json"),
    }


def _launch(
    cluster: Embedded,
    config: dict[str, Any],
    limit_s: float,
    state_dir: Path,
    progress: Progress,
) -> dict[str, Any]:
    log_path = state_dir / "cluster.log"
    with os.fdopen(os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)) as log:
        process = subprocess.Popen(
            [sys.executable, "-m", STARTER, json.dumps(config)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=daemon_environment(
                cluster.token_file,
                cluster.temp_dir,
                config.get("node_ip", ""),
                redis=config.get("redis", ""),
                storage=config.get("storage", ""),
            )
            | {MARK: cluster.mark},
            cwd=cluster.temp_dir,
            start_new_session=True,
        )
    _children.append(process)
    began = time.monotonic()
    ready = Path(config["ready_file"])
    told = 0
    while not ready.exists():
        waited = time.monotonic() - began
        if process.poll() is not None:
            raise StartupTimeoutError(
                f"Ray ended while it was starting (code {process.returncode}); see {log_path}",
                log=log_path,
            )
        if waited > limit_s:
            raise StartupTimeoutError(
                f"Ray did not answer within {limit_s:g} s; see {log_path}", log=log_path
            )
        if int(waited) >= told:
            progress(f"starting Ray on {config['labels'][LABEL_HOST]} ({int(waited)} s)")
            told = int(waited) + 1
        time.sleep(POLL_S)
    answer: dict[str, Any] = json.loads(ready.read_text())
    return answer


def _members(pids: list[int]) -> tuple[Member, ...]:
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            found.append(Member(pid, psutil.Process(pid).create_time()))
    return tuple(found)


def marked(mark: str) -> Iterator[Member]:
    """Find every process that carries the cluster's mark, whoever its parent is now."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                yield Member(process.pid, process.create_time())


def _end(cluster: Embedded, state_dir: Path) -> int:
    seen: dict[Member, None] = dict.fromkeys(cluster.members)
    # The starters first: each asks its raylet, and the raylet ends its workers in order.
    asked = [item for item in marked(cluster.mark) if _is_starter(item)]
    for member in asked:
        _signal(member, "terminate")
    deadline = time.monotonic() + ASKED_GRACE_S
    killing = False
    while True:
        seen.update(dict.fromkeys(marked(cluster.mark)))
        alive = [item for item in seen if item.alive()]
        if not alive:
            break
        if time.monotonic() > deadline:
            if killing:
                rows = ", ".join(str(item.pid) for item in alive)
                raise CleanupIncompleteError(f"processes of Ray survived: {rows}", survivors=rows)
            killing = True
            deadline = time.monotonic() + KILLED_GRACE_S
        if killing or not asked:
            for item in alive:
                _signal(item, "kill")
        time.sleep(POLL_S)
    _children[:] = [child for child in _children if child.poll() is None]
    shutil.rmtree(cluster.temp_dir, ignore_errors=True)
    (state_dir / "cluster.json").unlink(missing_ok=True)
    return len(seen)


def _is_starter(member: Member) -> bool:
    process = member.alive()
    with contextlib.suppress(psutil.Error):
        return process is not None and STARTER in process.cmdline()
    return False


def _signal(member: Member, verb: str) -> None:
    process = member.alive()
    if process is not None:
        with contextlib.suppress(psutil.Error):
            getattr(process, verb)()


def _write(state_dir: Path, cluster: Embedded) -> None:
    spare = state_dir / "cluster.json.new"
    with os.fdopen(os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump(asdict(cluster), out)
    spare.replace(state_dir / "cluster.json")


@contextlib.contextmanager
def _locked(state_dir: Path) -> Iterator[None]:
    """Let one process at a time start or stop the cluster of a state folder."""
    fd = os.open(state_dir / "cluster.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SessionStateError(
                f"another command is starting or stopping the cluster of {state_dir}",
                state_dir=state_dir,
            ) from error
        yield
    finally:
        os.close(fd)
