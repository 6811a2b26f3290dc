import pytest

from fabric.core.model import Network, SandboxMode
from workers.sandbox import landlock
from workers.sandbox.landlock import (
    DEVICE,
    EXECUTE,
    IOCTL_DEV,
    MAKE_BLOCK,
    MAKE_CHAR,
    READ,
    READ_DIR,
    REFER,
    TERMINAL,
    TRUNCATE,
    WRITE,
    WRITE_FILE,
    handled_files,
    is_partial,
    may_write_temporary,
    openable,
    ruleset,
    scope_only,
)
from workers.sandbox.policy import Folder, ResolvedPolicy

TREE = {
    "/": [("bin", True), ("dev", False), ("etc", False), ("h", False), ("tmp", False)],
    "/h": [("me", False), ("you", False)],
    "/h/me": [(".ray", False), ("code", False), ("link", True), ("notes", False)],
    "/tmp": [("ray", False), ("x", False)],
}
WS = Folder("/h/me/code", 7, 42)


def listing(path):
    return TREE.get(path, [])


def policy(mode=SandboxMode.READ_ONLY):
    return ResolvedPolicy(mode, Network.SHARED, WS, WS.path)


def rules_of(step):
    return {path: access for path, access, _ in step["rules"]}


def test_without_masks_the_top_of_the_tree_is_opened_links_left_out():
    assert openable([], listing) == ["/dev", "/etc", "/h", "/tmp"]


def test_a_masked_path_is_left_out_by_opening_its_siblings():
    assert openable(["/h/me/.ray", "/dev"], listing) == [
        "/etc", "/h/me/code", "/h/me/notes", "/h/you", "/tmp",
    ]  # fmt: skip


def test_several_masks_and_a_mask_of_everything():
    assert openable(["/h", "/tmp/ray", "/etc"], listing) == ["/dev", "/tmp/x"]
    assert openable(["/"], listing) == []


@pytest.mark.parametrize("abi", range(1, 8))
def test_rights_are_those_of_the_abi(abi):
    handled = handled_files(abi)
    assert bool(handled & REFER) == (abi >= 2)
    assert bool(handled & TRUNCATE) == (abi >= 3)
    assert bool(handled & IOCTL_DEV) == (abi >= 5)
    step = ruleset(policy(SandboxMode.WORKSPACE_WRITE), abi, [], listing)
    assert step["fs"] == handled
    assert all(access & ~handled == 0 for _, access, _ in step["rules"])
    assert bool(step["scope"]) == (abi >= 6)


def test_read_only_writes_nothing_but_devices_and_the_terminal():
    step = ruleset(policy(), 7, ["/h/me/.ray"], listing)
    writing = {path for path, access in rules_of(step).items() if access & WRITE}
    assert writing == {
        "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
    }  # fmt: skip
    assert rules_of(step)["/"] == READ_DIR
    assert rules_of(step)["/dev/null"] == DEVICE
    assert rules_of(step)["/dev/tty"] == TERMINAL == step["tty"]
    assert "/dev" not in rules_of(step)
    assert "/h/me/.ray" not in rules_of(step)


def test_workspace_write_adds_the_very_folder_that_was_checked():
    step = ruleset(policy(SandboxMode.WORKSPACE_WRITE), 7, [], listing, Folder("/tmp", 7, 2))
    assert ["/h/me/code", READ | WRITE, [7, 42]] in step["rules"]
    assert ["/tmp", READ | WRITE, [7, 2]] in step["rules"]
    assert not (READ | WRITE) & (MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)


def test_a_workspace_that_holds_the_temporary_folder_is_granted_once():
    wide = ResolvedPolicy(SandboxMode.WORKSPACE_WRITE, Network.SHARED, Folder("/tmp", 7, 2), "/tmp")
    step = ruleset(wide, 7, [], listing, Folder("/tmp", 7, 2))
    assert [row[0] for row in step["rules"] if row[2]] == ["/tmp"]


def test_the_temporary_folder_is_shared_only_when_nothing_masked_is_in_it():
    assert may_write_temporary(["/h/me/.ray"])
    assert not may_write_temporary(["/tmp/ray"])
    assert not may_write_temporary(["/tmp"])


def test_what_is_called_partial():
    full = [abi for abi in range(1, 8) if not is_partial(SandboxMode.READ_ONLY, abi, filtered=True)]
    assert full == [6, 7]
    assert is_partial(SandboxMode.READ_ONLY, 7, filtered=False)
    assert is_partial(SandboxMode.WORKSPACE_WRITE, 7, filtered=True)


def test_the_scope_alone_handles_no_right_over_files():
    assert scope_only(5) is None
    step = scope_only(6)
    assert step is not None
    assert (step["fs"], step["rules"]) == (0, [])
    assert step["scope"] == 3


def test_an_absent_kernel_call_means_no_landlock(monkeypatch):
    class Broken:
        def __init__(self, *_, **__):
            raise OSError

    monkeypatch.setattr(landlock.ctypes, "CDLL", Broken)
    assert landlock.kernel_abi() == 0


def test_reading_means_running_too():
    assert READ & EXECUTE
    assert not READ & WRITE_FILE
