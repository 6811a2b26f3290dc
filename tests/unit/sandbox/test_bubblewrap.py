import pytest

from fabric.core.model import Network, SandboxMode
from workers.sandbox.bubblewrap import WORKSPACE_FD, arguments, binds_workspace, hidden, is_visible
from workers.sandbox.policy import Folder, ResolvedPolicy


def policy(mode=SandboxMode.READ_ONLY, root="/srv/ws", network=Network.SHARED, cwd=None):
    return ResolvedPolicy(mode, network, Folder(root, 1, 2), cwd or root)


def words(*masks, as_root=False, **facts):
    return " ".join(arguments("bwrap", policy(**facts), masks, as_root=as_root))


WRITE = SandboxMode.WORKSPACE_WRITE


def test_read_only_as_a_whole():
    text = words()
    assert text.startswith("bwrap --ro-bind / / --dev /dev --proc /proc ")
    assert "--bind-fd" not in text
    assert "--tmpfs /tmp" not in text
    assert text.endswith(
        "--unshare-pid --unshare-ipc --die-with-parent --cap-drop ALL --chdir /srv/ws --"
    )


def test_the_terminal_is_kept():
    assert "--new-session" not in words(mode=WRITE, network=Network.NONE)


def test_workspace_write_adds_a_private_tmp_and_then_the_workspace_by_descriptor():
    text = words(mode=WRITE)
    bind = f"--bind-fd {WORKSPACE_FD} /srv/ws"
    assert "--perms 1777 --tmpfs /tmp" in text
    assert text.index("--tmpfs /tmp") < text.index(bind)


def test_a_workspace_below_tmp_is_bound_over_the_private_one():
    text = words(mode=WRITE, root="/tmp/ws")
    assert text.index("--tmpfs /tmp ") < text.index(f"--bind-fd {WORKSPACE_FD} /tmp/ws")


def test_tmp_as_the_workspace_is_not_granted_twice():
    text = words(mode=WRITE, root="/tmp")
    assert "--tmpfs /tmp " not in text
    assert f"--bind-fd {WORKSPACE_FD} /tmp" in text


def test_a_workspace_in_run_stays_readable_in_read_only():
    assert f"--ro-bind-fd {WORKSPACE_FD} /run/build" in words(root="/run/build")
    assert not binds_workspace(policy())
    assert binds_workspace(policy(root="/run/build"))


def test_no_network_is_a_namespace_of_its_own():
    assert "--unshare-net" in words(network=Network.NONE)
    assert "--unshare-net" not in words()


def test_a_confined_root_cannot_write_to_proc():
    assert "--proc /proc --remount-ro /proc" in words(as_root=True)
    assert "--remount-ro" not in words()


def test_masks_come_after_everything_that_could_uncover_them():
    text = words(("/srv/ws/state", True), ("/etc/key", False), mode=WRITE)
    assert text.index("--bind-fd") < text.index("--tmpfs /srv/ws/state")
    assert "--ro-bind /dev/null /etc/key" in text


def test_what_is_hidden_anyway_gets_no_mask():
    text = words(("/run/docker.sock", False), ("/tmp/ray", True), mode=WRITE)
    assert "docker.sock" not in text
    assert "/tmp/ray" not in text
    assert "--tmpfs /tmp/ray" in words(("/tmp/ray", True))


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/etc", True),
        ("/run", True),
        ("/run/user/1000", False),
        ("/run/systemd/resolve/x", True),
        ("/tmp", True),
        ("/tmp/other", False),
        ("/tmp/ws", True),
        ("/tmp/ws/deep", True),
    ],
)
def test_what_can_be_seen_in_workspace_write(path, seen):
    assert is_visible(path, policy(mode=WRITE, root="/tmp/ws")) is seen


def test_hidden_folders_by_mode():
    assert hidden(policy()) == ("/run",)
    assert hidden(policy(mode=WRITE)) == ("/run", "/tmp")


def test_run_is_hidden_where_there_is_one_but_for_what_is_kept():
    kept = arguments("bwrap", policy(), (), as_root=False, run_kept=("/run/systemd/resolve",))
    assert "--tmpfs /run --ro-bind-try /run/systemd/resolve" in " ".join(kept)
    assert "/run" not in arguments("bwrap", policy(), (), as_root=False, run_kept=None)
