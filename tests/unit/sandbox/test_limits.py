"""Cgroups against a folder that looks like one."""

from pathlib import Path

import pytest

from fabric.core.settings import SandboxSettings
from tests.support.local_worker import spec_for
from workers.sandbox.limits import Limits, delegated, own_cgroup, resource_limits

MOUNTS = """22 1 0:20 / /sys rw - sysfs sysfs rw
30 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw
"""
ALL = Limits(memory=1 << 30, pids=100, cpu_weight=50)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("")
    return tmp_path


def test_the_own_cgroup_is_found():
    assert own_cgroup(MOUNTS, "0::/a.slice/b\n") == Path("/sys/fs/cgroup/a.slice/b")
    assert own_cgroup(MOUNTS, "0::/\n") == Path("/sys/fs/cgroup")


def test_beside_the_old_version_and_below_a_mounted_part():
    mixed = "9:memory:/x\n0::/a/b\n"
    assert own_cgroup("30 22 0:26 / /u rw - cgroup2 c rw", mixed) == Path("/u/a/b")
    assert own_cgroup("30 22 0:26 /a /u rw - cgroup2 c rw", mixed) == Path("/u/b")
    assert own_cgroup("30 22 0:26 /z /u rw - cgroup2 c rw", mixed) is None


def test_the_old_version_alone_delegates_nothing():
    assert own_cgroup("30 22 0:26 / /m rw - cgroup cgroup rw,memory", "4:memory:/x\n") is None
    assert own_cgroup("30 22 0:26 / /m rw - cgroup cgroup rw", "0::/\n") is None
    assert delegated(None) is None


def test_controllers_are_handed_on_and_a_session_gets_its_limits(base):
    cgroups = delegated(base)
    assert cgroups is not None
    assert (base / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    made, force = cgroups.create("ses_a", ALL)
    assert (force.by, force.names, force.unmet) == ("cgroup", ("memory", "pids", "cpu_weight"), ())
    assert made.folder == base / "fabric-ses_a"
    assert (made.folder / "memory.max").read_text() == str(1 << 30)
    assert (made.folder / "memory.swap.max").read_text() == "0"
    assert (made.folder / "pids.max").read_text() == "100"
    assert (made.folder / "cpu.weight").read_text() == "50"
    assert made.procs == str(base / "fabric-ses_a" / "cgroup.procs")


def test_limits_that_are_not_set_are_not_written(base):
    cgroups = delegated(base)
    assert cgroups is not None
    made, force = cgroups.create("ses_a", Limits())
    assert list(made.folder.iterdir()) == []
    assert force.names == ()
    assert made.remove()
    assert made.remove()


def test_a_missing_controller_is_reported(base):
    (base / "cgroup.controllers").write_text("pids")
    (base / "cgroup.subtree_control").write_text("pids")
    cgroups = delegated(base)
    assert cgroups is not None
    _, force = cgroups.create("ses_a", ALL)
    assert (force.names, force.unmet) == (("pids",), ("memory", "cpu_weight"))


def test_a_cgroup_without_our_controllers_is_not_delegated(base):
    (base / "cgroup.controllers").write_text("")
    assert delegated(base) is None


def test_a_cgroup_that_refuses_is_not_delegated(base):
    (base / "cgroup.subtree_control").unlink()
    assert delegated(base) is None


def test_the_one_above_is_used_only_from_a_leaf_made_for_it(base):
    for name, expected in (("main", base), ("worker-7", None)):
        (base / name).mkdir()
        found = delegated(base / name)
        assert (found.base if found else None) == expected


def test_a_kill_for_want_of_memory_is_seen_also_by_a_later_worker(base):
    cgroups = delegated(base)
    assert cgroups is not None
    made, _ = cgroups.create("ses_a", ALL)
    events = made.folder / "memory.events"
    assert not made.was_out_of_memory()
    events.write_text("low 0\noom 3\noom_kill 0\noom_group_kill 0\n")
    found = cgroups.find("ses_a")
    assert found is not None
    assert not found.was_out_of_memory()
    events.write_text("low 0\noom 4\noom_kill 1\n")
    assert found.was_out_of_memory()
    assert made.was_out_of_memory()
    assert cgroups.find("ses_b") is None


def test_everything_in_it_can_be_killed_at_once_and_a_full_one_stays(base):
    cgroups = delegated(base)
    assert cgroups is not None
    made, _ = cgroups.create("ses_a", ALL)
    assert made.kill()
    assert (made.folder / "cgroup.kill").read_text() == "1"
    assert not made.remove()  # the folder holds something


def test_a_failed_creation_raises(base):
    cgroups = delegated(base)
    assert cgroups is not None
    (base / "fabric-ses_a").mkdir()
    (base / "fabric-ses_a" / "memory.max").mkdir()
    with pytest.raises(OSError, match="directory"):
        cgroups.create("ses_a", ALL)


def test_resource_limits_hold_what_they_can_and_say_what_not():
    rows, force = resource_limits(ALL, own_uid=False)
    assert dict(rows) == {"RLIMIT_CORE": 0, "RLIMIT_NOFILE": 65536, "RLIMIT_DATA": 1 << 30}
    assert (force.by, force.names, force.unmet) == ("rlimit", ("memory",), ("pids", "cpu_weight"))
    rows, force = resource_limits(ALL, own_uid=True)
    assert dict(rows)["RLIMIT_NPROC"] == 100
    assert force.unmet == ("cpu_weight",)
    assert resource_limits(Limits(), own_uid=False)[1].by == "none"


def test_limits_come_from_the_settings_unless_the_owners_policy_names_them():
    settings = SandboxSettings(memory_max_bytes=5, pids_max=6, cpu_weight=99_999)
    assert Limits.of(settings, spec_for()) == Limits(5, 6, 10_000)
    named = spec_for(memory_max_bytes=0, pids_max=7, cpu_weight=50)
    assert Limits.of(settings, named) == Limits(0, 7, 50)
    assert Limits.of(SandboxSettings(), spec_for()).wanted == ()
