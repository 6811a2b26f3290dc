"""What ``fabric doctor`` looks at on this machine; ``fabric.cli.findings`` judges it.

Every look is bounded, changes nothing and leaves nothing. Where a thing can be tried it is
tried instead of read from a setting: a sandbox that starts and holds, a wait that is seen.
"""

import contextlib
import ctypes
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from cryptography import x509

from fabric.actors import checkup
from fabric.cli import findings
from fabric.cli.findings import Finding
from fabric.core.errors import FabricError
from fabric.core.neighbours import refuse_the_ssh_library
from fabric.core.settings import Settings

RAY_MINOR = "2.60"
_TRIAL_S = 2.0
_LOOK_EVERY_S = 0.005
_TIME_ERROR = 5
# A child that nobody here is an ancestor of, as a shell is to its worker: it waits in a read.
_FOREIGN = "import os\nif os.fork(): os._exit(0)\nprint(os.getpid(), flush=True)\nos.read(0, 1)"


def findings_here(settings: Settings, folder: Path) -> Iterator[Finding]:
    """Look at everything that this machine needs, whether or not a fabric runs."""
    node = settings.node
    yield findings.python(sys.version_info[:3])
    yield findings.ray(_version_of("ray"), RAY_MINOR)
    yield _neighbours()
    kinds, failure = checkup.sandbox_kinds(settings.worker.sandbox)
    yield findings.sandbox(kinds, failure)
    yield findings.exact_tier(
        sees_foreign_wait(),
        _number("/proc/sys/kernel/yama/ptrace_scope"),
        hidepid(_text("/proc/self/mounts")),
        linux=platform.system() == "Linux",
    )
    left = checkup.capacity()
    yield findings.terminals(left.ptys, node.max_sessions, node.min_free_ptys)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield findings.descriptors(
        None if soft == resource.RLIM_INFINITY else soft, node.max_sessions, node.min_free_fds
    )
    yield findings.processes(*process_limit(), node.max_sessions)
    yield findings.memory(left.memory_bytes, node.max_sessions, node.min_free_memory_bytes)
    for place in dict.fromkeys((str(folder), tempfile.gettempdir(), "/var/tmp")):  # noqa: S108
        yield findings.room(place, *_room(place))
    yield findings.priority(os.nice(0), _number("/proc/self/oom_score_adj"))
    yield findings.clock_sync(clock_is_synchronised())


def findings_of_credentials(settings: Settings, folder: Path) -> Iterator[Finding]:
    """Look at the files with tokens, keys and certificates that the settings name."""
    from fabric.gateway import bearer

    gateway = settings.gateway
    named = (
        ("tokens", gateway.token_file, bearer.parse_token_file),
        ("signing keys", gateway.signing_key_file, bearer.parse_key_file),
        ("revoked tokens", gateway.revoked_file, bearer.parse_revoked_file),
        ("TLS key", gateway.tls_key_file, None),
        ("Ray token", str(folder / "ray.token"), None),
    )
    for what, path, parse in named:
        if not path or (what == "Ray token" and not Path(path).exists()):
            continue
        problem = ""
        try:
            if parse is not None:
                parse(Path(path))
            facts = Path(path).stat()
        except (OSError, FabricError) as error:
            mode, own = None, True
            problem = getattr(error, "message", "") or str(error)
        else:
            mode, own = facts.st_mode & 0o777, facts.st_uid in (os.geteuid(), 0)
            if what == "revoked tokens":
                mode &= 0o700  # ids are no secret
        yield findings.private_file(what, path, mode, own, problem)
    shown = (
        ("certificate", gateway.tls_cert_file),
        ("callers' CA", gateway.tls_client_ca_file),
        ("gateways' CA", gateway.tls_ca_file),
    )
    for what, path in shown:
        if path:
            yield findings.certificate(what, path, *_certificate(path))


def sees_foreign_wait() -> bool:
    """Try whether the wait of a process that is no descendant of ours can be seen in /proc."""
    if not Path("/proc/self/syscall").exists():
        return False
    # The child ends when its input does, whatever becomes of this process.
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _FOREIGN],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None  # noqa: S101  (both are pipes)
        assert process.stdout is not None  # noqa: S101
        try:
            process.wait(_TRIAL_S)
            return _becomes_readable(f"/proc/{int(process.stdout.readline())}/syscall")
        except (OSError, ValueError, subprocess.TimeoutExpired):
            process.kill()
            return False


def _becomes_readable(path: str) -> bool:
    deadline = time.monotonic() + _TRIAL_S
    while time.monotonic() < deadline:
        row = Path(path).read_text()  # PermissionError: it is hidden, by Yama or hidepid
        if row.split()[0].isdigit():
            return True
        time.sleep(_LOOK_EVERY_S)
    return False


def hidepid(mounts: str) -> str:
    """Return what /proc hides, from the text of /proc/self/mounts; "" for nothing."""
    found = ""
    for row in mounts.splitlines():
        parts = row.split()
        if len(parts) > 3 and parts[1] == "/proc":
            options = dict(item.partition("=")[::2] for item in parts[3].split(","))
            found = options.get("hidepid", "")
    return found


def process_limit() -> tuple[int | None, str]:
    """Return the tightest limit on processes of this user or cgroup, and where it is set."""
    rows: list[tuple[int, str]] = []
    if os.geteuid():  # root is not held to it
        soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
        if soft != resource.RLIM_INFINITY:
            rows.append((soft, "ulimit -u"))
    for row in _text("/proc/self/cgroup").splitlines():
        _, controllers, path = row.split(":", 2)
        top = Path("/sys/fs/cgroup") / ("pids" if controllers == "pids" else "")
        if controllers in ("", "pids"):
            limit = _number(f"{top}{path}/pids.max")
            if limit is not None:
                rows.append((limit, "pids.max of the cgroup"))
    most = _number("/proc/sys/kernel/threads-max")
    if most is not None:
        rows.append((most, "kernel.threads-max"))
    return min(rows) if rows else (None, "")


def clock_is_synchronised() -> bool | None:
    """Ask the kernel whether its clock follows a reference; None where it cannot be asked."""
    if sys.platform != "linux":
        return None
    timex = ctypes.create_string_buffer(512)  # modes 0: only look
    state = ctypes.CDLL(None).adjtimex(timex)
    return None if state < 0 else state != _TIME_ERROR


def _neighbours() -> Finding:
    try:
        refuse_the_ssh_library()
    except FabricError as error:
        why = "Python would mix the two packages called fabric"
        return findings.fail("environment", error.message, why, error.metadata["hint"])
    return findings.ok("environment", f"pty-fabric {_version_of('pty-fabric')}")


def _room(place: str) -> tuple[int | None, str]:
    path = Path(place)
    while not path.exists() and path != path.parent:
        path = path.parent
    try:
        with tempfile.TemporaryFile(dir=path):
            pass
        return shutil.disk_usage(path).free, ""
    except OSError as error:
        return None, error.strerror or str(error)


def _certificate(path: str) -> tuple[float | None, str]:
    try:
        rows = x509.load_pem_x509_certificates(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        return None, getattr(error, "strerror", None) or "no certificate is in it"
    return min(row.not_valid_after_utc.timestamp() for row in rows) - time.time(), ""


def _version_of(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _text(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text()
    return ""


def _number(path: str) -> int | None:
    with contextlib.suppress(ValueError):
        return int(_text(path))
    return None
