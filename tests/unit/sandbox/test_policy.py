import pytest

from fabric.core.errors import InvalidRequestError
from fabric.core.ids import AgentId, OwnerId, Principal, SessionId
from fabric.core.model import Network, OpenSpec, SandboxMode
from workers.sandbox.policy import Folder, is_below, resolve, writable_roots

FOLDERS = {
    path: Folder(real, 1, inode)
    for inode, (path, real) in enumerate(
        {
            "/": "/",
            "/srv/work": "/srv/work",
            "/srv/work/a": "/srv/work/a",
            "/srv/workshop": "/srv/workshop",
            "/srv/work/out": "/etc",
            "/h/me": "/h/me",
            "/link": "/srv/work",
            "/tmp": "/private/tmp",
        }.items()
    )
}


def spec(**facts):
    return OpenSpec(
        session_id=SessionId("ses_a"),
        owner_id=OwnerId("own_a"),
        epoch=1,
        principal=Principal("p"),
        agent=AgentId("a"),
        type="shell",
        **{"mode": SandboxMode.READ_ONLY, **facts},
    )


def resolved(*roots, default="/h/me", **facts):
    return resolve(
        spec(**facts), allowed_roots=roots, node_cwd_default=default, look_up=FOLDERS.get
    )


def test_the_root_of_the_policy_beats_the_default_of_the_node():
    assert resolved(workspace_root="/srv/work").workspace_root == "/srv/work"
    assert resolved().workspace_root == "/h/me"


def test_the_root_is_canonical_and_keeps_its_identity():
    policy = resolved(workspace_root="/link")
    assert policy.workspace == FOLDERS["/link"]
    assert policy.workspace_root == "/srv/work"


def test_the_working_folder_never_becomes_the_root():
    policy = resolved(cwd="/etc", mode=SandboxMode.WORKSPACE_WRITE)
    assert (policy.workspace_root, policy.cwd) == ("/h/me", "/etc")


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [
        (None, "/srv/work"),
        ("", "/srv/work"),
        ("a", "/srv/work/a"),
        ("a/../b", "/srv/work/b"),
        ("/no/such", "/no/such"),
    ],
)
def test_the_working_folder_counts_from_the_root(cwd, expected):
    assert resolved(workspace_root="/srv/work", cwd=cwd).cwd == expected


@pytest.mark.parametrize("root", ["/no/such", "srv/work", "/srv\0work"])
def test_a_root_that_is_no_folder_is_refused(root):
    with pytest.raises(InvalidRequestError, match="workspace"):
        resolved(workspace_root=root)


@pytest.mark.parametrize("root", ["/h/me", "/srv/workshop", "/srv/work/out"])
@pytest.mark.parametrize("mode", SandboxMode)
def test_a_root_outside_the_allowed_ones_is_refused_also_through_a_link(root, mode):
    with pytest.raises(InvalidRequestError, match="outside the roots"):
        resolved("/srv/work", workspace_root=root, mode=mode)


def test_allowed_roots_are_canonical_too():
    assert resolved("/link", workspace_root="/srv/work/a").workspace_root == "/srv/work/a"


def test_an_allowed_root_that_does_not_exist_allows_nothing():
    with pytest.raises(InvalidRequestError):
        resolved("/no/such", workspace_root="/srv/work")


def test_the_whole_machine_cannot_be_the_workspace_but_may_be_read():
    with pytest.raises(InvalidRequestError, match="whole machine"):
        resolved(workspace_root="/", mode=SandboxMode.WORKSPACE_WRITE)
    assert resolved(workspace_root="/").workspace_root == "/"


def test_a_nul_in_the_working_folder_is_refused():
    with pytest.raises(InvalidRequestError, match="NUL"):
        resolved(cwd="/a\0b")


def test_mode_network_and_account_pass_through():
    policy = resolved(network=Network.NONE, run_as="bob")
    assert (policy.mode, policy.network, policy.run_as) == (
        SandboxMode.READ_ONLY,
        Network.NONE,
        "bob",
    )
    assert policy.is_confined
    assert not resolved(mode=SandboxMode.DANGER_FULL_ACCESS).is_confined


def test_below_is_about_whole_names():
    assert is_below("/a/b", "/a")
    assert is_below("/a", "/a")
    assert is_below("/a", "/")
    assert not is_below("/ab", "/a")
    assert not is_below("/a", "/a/b")


def test_writable_roots_by_mode():
    assert writable_roots(resolved(), "/tmp") == ()
    writes = resolved(mode=SandboxMode.WORKSPACE_WRITE)
    assert writable_roots(writes, "/tmp", "/tmp", "/h/me/tmp") == ("/h/me", "/tmp")
