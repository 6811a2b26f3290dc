"""Where a session works that was given no folder."""

from dataclasses import replace

import pytest

from fabric.core.model import SandboxMode
from fabric.core.settings import SandboxSettings
from tests.support.local_worker import spec_for
from workers.sandbox import workspace
from workers.sandbox.account import Account

ME = Account(1000, 1000, (1000,), "me", "/srv/me", "/bin/sh")
WRITE = SandboxMode.WORKSPACE_WRITE


def root_of(mode=WRITE, environ=None, account=ME, **settings):
    spec = replace(spec_for(), mode=mode, principal="alice", agent="build/7", workspace_root=None)
    return workspace.default_root(spec, SandboxSettings(**settings), account, environ or {})


def test_a_session_that_writes_gets_a_folder_of_its_owner(monkeypatch):
    monkeypatch.setattr(workspace.os, "geteuid", lambda: 1000)
    here = "/srv/me/.local/share/pty-fabric/workspaces/alice/build%2F7"
    assert root_of() == (here, True)
    assert root_of(environ={"XDG_DATA_HOME": "/data"})[0] == (
        "/data/pty-fabric/workspaces/alice/build%2F7"
    )
    monkeypatch.setattr(workspace.os, "geteuid", lambda: 0)
    assert root_of()[0] == "/var/lib/pty-fabric/workspaces/alice/build%2F7"
    assert root_of(allowed_roots=("/srv", "/opt"))[0] == "/srv/alice/build%2F7"


def test_the_nodes_own_folder_comes_first():
    assert root_of(workspace_root="/srv/ws") == ("/srv/ws", False)
    named = root_of(workspace_root="/srv/{principal}/x-{agent}")
    assert named == ("/srv/alice/x-build%2F7", True)


@pytest.mark.parametrize("mode", [SandboxMode.READ_ONLY, SandboxMode.DANGER_FULL_ACCESS])
def test_a_session_that_cannot_write_there_starts_at_home(mode):
    assert root_of(mode) == ("/", False)  # the home of this account does not exist
    assert root_of(mode, account=replace(ME, home="/usr")) == ("/usr", False)
    assert root_of(mode, allowed_roots=("/srv",)) == ("/srv", False)


def test_names_of_folders_lead_nowhere_else_and_stay_apart():
    names = [
        "a", "A", "..", ".", ".a", "%2E", "a/b", "a%2Fb", "~", "{agent}", "x" * 128, "/" * 128,
        "/" * 127 + ":",
    ]  # fmt: skip
    made = [workspace.folder_name(name) for name in names]
    assert len(set(made)) == len(names)
    assert not any("/" in name or name.startswith(".") or len(name) > 255 for name in made)
