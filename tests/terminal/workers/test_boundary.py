"""What a session started by a real worker can reach, and what it is made of.

The worker runs in this process, whose environment and folders are full of secrets.
"""

import json
import os
import re
import shlex

import pytest

from fabric.core.settings import SandboxSettings, WorkerSettings
from tests.support.confined import FULL, READ, TEARDOWN, WRITE, environment_of, printed, session
from tests.support.local_worker import config_in, worker_in
from tests.support.signals import signals_of
from tests.terminal.sandbox.world import NOBODY, PYTHON, Way

CANARY = "canary-5f3a"
SECRETS = (
    "RAY_AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "FABRIC_TOKEN",
    "GRPC_TRACE", "SOMETHING", "LC_SECRET_KEY", "XDG_API_KEY",
)  # fmt: skip
WAYS = [
    Way(kind, mode, switched)
    for kind in ("bubblewrap", "landlock")
    for mode in (READ, WRITE)
    for switched in (False, True)
] + [Way("none", FULL, switched=True)]


@pytest.fixture
def service(place, monkeypatch):
    """A service's folders and environment, each with the canary."""
    state = place / "state"
    for name in ("ray.token", "gateway.token", "signing.keys", "registry.db"):
        (state / name).write_text(f"{CANARY} {name}")
    for name in ("outside.key", "ray_auth_token"):
        (place / name).write_text(CANARY)
        (place / name).chmod(0o600)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(place / "ray_auth_token"))
    for name in SECRETS:
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{CANARY}@proxy.example:3128")
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.setenv("LANG", "C")
    monkeypatch.setenv("LC_CTYPE", "xx_XX.UTF-8")  # which no machine has
    settings = SandboxSettings(masked_paths=(str(state), str(place / "outside.key")))
    return WorkerSettings(sandbox=settings, teardown=TEARDOWN)


def skip_unless_possible(way):
    if way.switched and os.geteuid() != 0:
        pytest.skip("only root can run as somebody else")


def reachable(text):
    (row,) = [line[1:] for line in text if line.startswith("@")]
    return json.loads(row)


def secrets_of(place, *slots):
    files = [path for path in (place / "state").rglob("*") if path.is_file()]
    files += [place / "outside.key", place / "ray_auth_token"]
    sockets = [path for slot in slots for path in (slot.channel_path, slot.shim_path)]
    assert all(path.is_socket() for path in sockets)
    return {
        "files": [str(path) for path in files],
        "sockets": [str(path) for path in sockets],
        "canary": CANARY,
    }


@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_no_secret_of_the_service_is_in_reach(way, place, service):
    skip_unless_possible(way)
    other = config_in(place / "state")
    async with worker_in(place / "state", service, other) as neighbour:
        await neighbour.open(env=(("MY_OWN", CANARY),))
        async with session(way, place, service) as shell:
            facts = secrets_of(place, other, shell.worker.config)
            assert len(facts["files"]) >= 6
            command = f"{PYTHON} -I -B {place}/look.py {shlex.quote(json.dumps(facts))}"
            reached = reachable(await printed(shell, command))
            if way.kind == "landlock" and way.writes and not way.switched:
                # Sockets by path cannot be forbidden there; each demands a key of its own.
                reached = [row for row in reached if not row.startswith("connected ")]
            assert reached == []


async def test_without_a_sandbox_the_same_attempts_succeed(place, service):
    other = config_in(place / "state")
    async with worker_in(place / "state", service, other) as neighbour:
        await neighbour.open(env=(("MY_OWN", CANARY),))
        async with session(Way("none", FULL), place, service) as shell:
            facts = secrets_of(place, other)
            command = f"{PYTHON} -I -B {place}/look.py {shlex.quote(json.dumps(facts))}"
            reached = reachable(await printed(shell, command))
    kinds = {row.split(" /")[0] for row in reached}
    assert {"read", "may write", "connected", "found a secret in"} <= kinds


@pytest.mark.parametrize("way", [*WAYS, Way("none", FULL)], ids=str)
async def test_a_session_starts_clean(way, place, service):
    """Environment of shell, sandbox and shim; descriptors, umask, signals, limits, locale."""
    skip_unless_possible(way)
    async with session(way, place, service) as shell:
        shim_pid = shell.worker.shim.shim_pid
        root = shell.opened.info.pid
        pids = {shim_pid, root, shell.worker.session.parts.inspector.foreground()}
        assert len(pids) == (3 if way.kind == "bubblewrap" else 2)
        for pid in pids:
            assert CANARY.encode() not in environment_of(pid), pid
        assert environment_of(shim_pid) == b""
        env = dict(
            row.split("=", 1) for row in await printed(shell, "env") if re.match(r"\w+=", row)
        )
        assert CANARY not in "".join(env.values())
        assert env["HTTPS_PROXY"] == "http://proxy.example:3128"
        assert not [name for name in env if name.startswith(("RAY_", "GRPC_"))]
        assert [name for name in env if name.startswith("FABRIC_")] == ["FABRIC_SESSION_ID"]
        assert env["HOME"].startswith("/")
        assert await printed(shell, f"{PYTHON} -c 'import sys; print(sys.stdout.encoding)'") == [
            "utf-8"
        ]
        assert await printed(shell, "locale charmap 2>&1") == ["UTF-8"]
        code = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1])"
        assert await printed(shell, f'{PYTHON} -I -c "{code}"') == ["[0, 1, 2]"]
        assert await printed(shell, "umask") == ["0022"]
        masks = await printed(shell, "grep -h Sig /proc/self/status | grep -E 'Blk|Ign'")
        assert [signals_of(row.split()[1]) for row in masks] == [set(), set()]
        assert await printed(shell, "ulimit -c; ulimit -t; ulimit -f") == [
            "0", "unlimited", "unlimited",
        ]  # fmt: skip
        assert int((await printed(shell, "ulimit -n"))[0]) >= 1024
        assert await printed(shell, "id -u") == [str(NOBODY if way.switched else os.geteuid())]
        confinement = shell.opened.info.confinement
        assert (confinement.kind, confinement.mode) == (way.kind, way.mode)
        assert confinement.run_as == (str(NOBODY) if way.switched else None)
