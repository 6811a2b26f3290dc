import json
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.core.errors import InvalidRequestError, SandboxUnavailableError, SpawnFailedError
from fabric.core.model import Network, SandboxMode
from fabric.core.plain import from_plain, to_plain
from workers.sandbox import confine, masks
from workers.sandbox.account import Account, account_of
from workers.sandbox.bubblewrap import WORKSPACE_FD
from workers.sandbox.policy import ResolvedPolicy, folder_at
from workers.sandbox.probe import NodeConfinement
from workers.shim import confine as applier

NODE = NodeConfinement(
    "build-7", "linux", "x86_64", "/x/bwrap", "/y/bwrap", True, 7, filtered=True, can_mount=True
)
BARE = NodeConfinement("build-7", "linux", "x86_64", failure="user namespaces are forbidden")
LANDLOCK = replace(BARE, landlock_abi=7, filtered=True)
MAC = NodeConfinement("mac-1", "darwin", "arm64", seatbelt=True)
WRITE, READ = SandboxMode.WORKSPACE_WRITE, SandboxMode.READ_ONLY
FULL = SandboxMode.DANGER_FULL_ACCESS
USER = Account(1000, 1000, (), "me", "/h/me", "/bin/sh")
ROOT = Account(0, 0, (), "root", "/root", "/bin/sh")
OTHER = Account(2000, 2000, (), "bot", "/h/bot", "/bin/sh", switched=True)


@pytest.fixture(autouse=True)
def _still_world(monkeypatch):
    monkeypatch.setattr(confine, "account_of", lambda _: USER)
    monkeypatch.setattr(masks, "listening_sockets", lambda: ())
    monkeypatch.setattr(masks, "_may_search", lambda *_: True)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


def policy(root: Path, mode=READ, network=Network.SHARED, cwd: str | None = None):
    folder = folder_at(str(root))
    assert folder is not None
    return ResolvedPolicy(mode, network, folder, cwd or folder.path)


def launched(root, node=NODE, masked=(), env=None, *, argv=("bash", "-i"), procs=None, **facts):
    return confine.plan(policy(root, **facts), argv, env or {}, node, masked, cgroup_procs=procs)


def steps(launch):
    return json.loads(launch.landlock)


def test_full_access_is_not_wrapped(workspace):
    launch = launched(workspace, BARE, mode=FULL)
    assert launch.argv == ("bash", "-i")
    assert launch.landlock is None
    assert launch.confinement.kind == "none"


def test_full_access_still_joins_its_cgroup(workspace):
    launch = launched(workspace, BARE, mode=FULL, procs="/cg/cgroup.procs")
    assert steps(launch) == {"v": 1, "cgroup": "/cg/cgroup.procs"}


def test_full_access_without_network_cannot_be_met(workspace):
    with pytest.raises(SandboxUnavailableError, match="confined mode"):
        launched(workspace, mode=FULL, network=Network.NONE)


@pytest.mark.parametrize("mode", [READ, WRITE])
def test_a_node_that_cannot_confine_refuses_and_names_mode_node_and_way_out(workspace, mode):
    with pytest.raises(SandboxUnavailableError) as caught:
        launched(workspace, BARE, mode=mode)
    text = caught.value.message
    assert mode.value in text
    assert "build-7" in text
    assert "danger-full-access" in text
    assert "user namespaces are forbidden" in text
    assert caught.value.metadata == {"mode": mode.value, "network": "shared", "node": "build-7"}


def test_bubblewrap_comes_first(workspace):
    launch = launched(workspace, mode=WRITE)
    assert launch.argv[0] == "/x/bwrap"
    assert launch.argv[-3:] == ("--", "bash", "-i")
    assert (launch.confinement.kind, launch.confinement.partial) == ("bubblewrap", False)
    assert launch.confinement.workspace_root == str(workspace)
    plan = steps(launch)
    facts = workspace.stat()
    assert plan["open"] == [[str(workspace), facts.st_dev, facts.st_ino, WORKSPACE_FD]]
    assert plan["landlock"]["fs"] == 0
    assert plan["landlock"]["scope"] == 3
    assert plan["no_new_privs"]
    assert plan["keyring"] == 250
    assert plan["devices"] == []
    assert "drop_caps" not in plan  # bubblewrap needs them and drops them itself


def test_root_protects_the_nodes_of_the_machine(workspace, monkeypatch):
    monkeypatch.setattr(confine, "account_of", lambda _: ROOT)
    assert "/dev/null" in steps(launched(workspace))["devices"]
    assert "--remount-ro" in launched(workspace).argv
    assert "/proc" in steps(launched(workspace, replace(LANDLOCK, can_mount=True)))["devices"]
    assert steps(launched(workspace, LANDLOCK))["devices"] == []


def test_another_account_uses_the_program_that_works_for_it(workspace, monkeypatch):
    monkeypatch.setattr(confine, "account_of", lambda _: OTHER)
    assert launched(workspace).argv[0] == "/y/bwrap"
    without = replace(NODE, bubblewrap_switched=None)
    assert launched(workspace, without).confinement.kind == "landlock"


def test_landlock_is_the_fallback_and_says_what_is_partial(workspace):
    read, write = launched(workspace, LANDLOCK), launched(workspace, LANDLOCK, mode=WRITE)
    assert read.argv == write.argv == ("bash", "-i")
    assert (read.confinement.kind, read.confinement.partial) == ("landlock", False)
    assert write.confinement.partial
    assert steps(read)["drop_caps"]
    old = replace(LANDLOCK, landlock_abi=3)
    assert launched(workspace, old).confinement.partial


def test_no_network_is_met_or_refused_never_widened(workspace):
    none = Network.NONE
    assert "--unshare-net" in launched(workspace, network=none).argv
    without = replace(NODE, bubblewrap_network=False)
    fallback = launched(workspace, without, network=none)
    assert (fallback.confinement.kind, fallback.confinement.network) == ("landlock", none)
    for node in (replace(LANDLOCK, filtered=False), replace(without, filtered=False)):
        with pytest.raises(SandboxUnavailableError, match="network none"):
            launched(workspace, node, network=none)


def test_masks_that_exist_are_applied(workspace, tmp_path):
    secret = tmp_path / "state"
    secret.mkdir()
    masked = [str(secret), str(tmp_path / "gone")]
    assert str(secret) in launched(workspace, masked=masked).argv
    assert str(tmp_path / "gone") not in launched(workspace, masked=masked).argv
    opened = {row[0] for row in steps(launched(workspace, LANDLOCK, masked))["landlock"]["rules"]}
    assert str(workspace) in opened
    assert str(secret) not in opened
    assert str(tmp_path) not in opened


def test_a_workspace_in_a_masked_folder_is_refused(workspace, tmp_path):
    with pytest.raises(InvalidRequestError, match="folder of the service"):
        launched(workspace, masked=[str(tmp_path)])


def test_a_working_folder_that_would_not_be_there_is_refused(workspace, tmp_path):
    hidden = tmp_path / "elsewhere"
    hidden.mkdir()
    with pytest.raises(SpawnFailedError, match="not visible"):
        launched(workspace, mode=WRITE, cwd="/run/user")
    with pytest.raises(SpawnFailedError, match="folder of the service"):
        launched(workspace, masked=[str(hidden)], cwd=str(hidden))


def test_sockets_known_at_the_start_are_masked_but_for_those_of_the_workspace(
    workspace, tmp_path, monkeypatch
):
    inside, masked = str(workspace / "s"), str(tmp_path / "state" / "s")
    outside = "/var/lib/other.sock"
    (tmp_path / "state").mkdir()
    found = (inside, outside, masked, "/run/docker.sock")
    monkeypatch.setattr(masks, "listening_sockets", lambda: found)
    secrets = [str(tmp_path / "state")]
    assert steps(launched(workspace, masked=secrets))["sockets"] == [inside, outside]
    assert steps(launched(workspace, masked=secrets, mode=WRITE))["sockets"] == [outside]


def test_a_temporary_folder_that_cannot_be_written_is_dropped(workspace):
    def chosen(path, node=NODE, mode=WRITE, masked=()):
        return launched(workspace, node, masked, {"TMPDIR": path}, mode=mode).env.get("TMPDIR")

    assert chosen("/var/tmp") is None
    assert chosen("/tmp/x") == "/tmp/x"
    assert chosen(f"{workspace}/t") == f"{workspace}/t"
    assert chosen("/var/tmp", mode=READ) == "/var/tmp"


def test_the_callers_environment_is_not_changed(workspace):
    env = {"TMPDIR": "/var/tmp"}
    launched(workspace, env=env, mode=WRITE)
    assert env == {"TMPDIR": "/var/tmp"}


def test_an_empty_command_is_refused(workspace):
    for argv in ((), ("",)):
        with pytest.raises(InvalidRequestError, match="empty"):
            launched(workspace, argv=argv)


def test_seatbelt_on_macos(workspace):
    launch = launched(workspace, MAC, mode=WRITE)
    assert launch.argv[0] == "/usr/bin/sandbox-exec"
    assert launch.confinement.kind == "seatbelt"
    with pytest.raises(SandboxUnavailableError):
        launched(workspace, replace(MAC, seatbelt=False))


@pytest.mark.parametrize(
    ("node", "kinds"),
    [
        (NODE, ("bubblewrap", "landlock", "network-none")),
        (LANDLOCK, ("landlock", "network-none")),
        (replace(LANDLOCK, filtered=False), ("landlock",)),
        (replace(BARE, bubblewrap="/x"), ("bubblewrap",)),
        (MAC, ("seatbelt", "network-none")),
        (replace(BARE, can_switch=True, cgroup="/c"), ("run-as", "cgroup")),
        (BARE, ()),
    ],
)
def test_what_a_node_advertises(node, kinds):
    assert node.kinds == kinds
    assert node.summary


def test_the_verdict_travels_as_plain_data():
    assert from_plain(NodeConfinement, to_plain(NODE)) == NODE


@pytest.mark.parametrize(
    "plan", [b"", b"[]", b"{}", b'{"v": 2}', b'{"v": 1, "steps": []}', b"\xff"]
)
def test_a_plan_that_is_not_understood_changes_nothing_and_raises(plan):
    with pytest.raises(ValueError, match=r".*"):
        applier.apply(plan)


def test_an_empty_plan_does_nothing():
    applier.apply(confine.serialise({}))


def test_accounts():
    assert account_of(None).switched is False
    assert account_of("0").name == account_of("root").name == "root"
    for name in ("no-such-account", "4294967294", ""):
        with pytest.raises(SpawnFailedError, match="no account"):
            account_of(name)
