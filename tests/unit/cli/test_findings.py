"""The verdicts of `fabric doctor`, from facts."""

import pytest

from fabric.cli import findings, machine
from fabric.cli.findings import DAY_S, GIB, Finding, Verdict
from fabric.core.settings import NodeSettings

OURS = ("0.1.0", "2.60.0", "3.11.7")
OK, WARN, FAIL = Verdict.OK, Verdict.WARN, Verdict.FAIL


@pytest.mark.parametrize(
    ("finding", "verdict"),
    [
        (findings.python((3, 11, 0)), OK),
        (findings.python((3, 10, 9)), FAIL),
        (findings.ray("2.60.4", "2.60"), OK),
        (findings.ray("2.61.0", "2.60"), FAIL),
        (findings.ray(None, "2.60"), FAIL),
        (findings.sandbox(("bubblewrap", "landlock"), ""), OK),
        (findings.sandbox(("landlock",), "no bubblewrap program"), WARN),
        (findings.sandbox(("run-as",), "no bubblewrap program"), FAIL),
        (findings.exact_tier(True, 0, ""), OK),
        (findings.exact_tier(False, 1, ""), WARN),
        (findings.exact_tier(False, None, "2"), WARN),
        (findings.exact_tier(False, None, "", linux=False), WARN),
        (findings.terminals(3000, 64, 8), OK),
        (findings.terminals(70, 64, 8), WARN),
        (findings.terminals(7, 64, 8), FAIL),
        (findings.terminals(-1, 64, 8), WARN),
        (findings.descriptors(None, 64, 256), OK),
        (findings.descriptors(65536, 64, 256), OK),
        (findings.descriptors(1024, 64, 256), WARN),
        (findings.descriptors(500, 64, 256), FAIL),
        (findings.processes(None, "", 64), OK),
        (findings.processes(2560, "ulimit -u", 64), OK),
        (findings.processes(2559, "ulimit -u", 64), WARN),
        (findings.memory(8 * GIB, 64, GIB // 4), OK),
        (findings.memory(2 * GIB, 64, GIB // 4), WARN),
        (findings.memory(GIB // 8, 64, GIB // 4), FAIL),
        (findings.room("/tmp", 2 * GIB), OK),
        (findings.room("/tmp", GIB // 2), WARN),
        (findings.room("/tmp", GIB // 16), FAIL),
        (findings.room("/tmp", None, "Read-only file system"), FAIL),
        (findings.priority(0, 0), OK),
        (findings.priority(15, 0), WARN),
        (findings.priority(0, 1000), WARN),
        (findings.private_file("tokens", "/t", 0o600, True, ""), OK),
        (findings.private_file("tokens", "/t", 0o644, True, ""), FAIL),
        (findings.private_file("tokens", "/t", 0o440, True, ""), WARN),
        (findings.private_file("tokens", "/t", 0o660, True, ""), FAIL),
        (findings.private_file("tokens", "/t", 0o600, False, ""), FAIL),
        (findings.private_file("tokens", "/t", None, True, "no such file"), FAIL),
        (findings.certificate("certificate", "/c", 90 * DAY_S, ""), OK),
        (findings.certificate("certificate", "/c", 3 * DAY_S, ""), WARN),
        (findings.certificate("certificate", "/c", -1.0, ""), FAIL),
        (findings.certificate("certificate", "/c", None, "not there"), FAIL),
        (findings.clock_sync(True), OK),
        (findings.clock_sync(False), WARN),
        (findings.clock_sync(None), WARN),
        (findings.skew("h2", 0.4, 0.1), OK),
        (findings.skew("h2", -5.0, 0.1), WARN),
        (findings.skew("h2", -5.0, 4.0), OK),
        (findings.skew("h2", 90.0, 0.1), FAIL),
        (findings.same("h2", OURS, OURS), OK),
        (findings.same("h2", ("0.1.0", "2.60.0", "3.11.9"), OURS), OK),
        (findings.same("h2", ("0.0.9", "2.60.0", "3.11.7"), OURS), WARN),
        (findings.same("h2", ("0.1.0", "2.61.0", "3.11.7"), OURS), FAIL),
        (findings.same("h2", ("0.1.0", "2.60.0", "3.12.1"), OURS), FAIL),
        (findings.turn(0.03, 0.002, 0.05), OK),
        (findings.turn(0.03, 2.0, 0.05), WARN),
    ],
)
def test_a_verdict_follows_from_its_fact_and_says_what_to_do(finding: Finding, verdict: Verdict):
    assert finding.verdict is verdict
    assert finding.check
    assert finding.fact
    assert bool(finding.why and finding.remedy) is (verdict is not OK)


def test_the_gravest_verdict_counts():
    assert findings.worst([]) is OK
    rows = [findings.ok("a", "b"), findings.fail("a", "b", "c", "d"), findings.clock_sync(None)]
    assert findings.worst(rows) is FAIL
    assert findings.worst(rows[:1] + rows[2:]) is WARN


def test_the_remedy_names_what_hides_the_wait():
    assert "yama" in findings.exact_tier(False, 1, "").remedy
    assert "hidepid" in findings.exact_tier(False, 0, "invisible").remedy
    assert "CAP_SYS_PTRACE" in findings.exact_tier(False, None, "").remedy


@pytest.mark.parametrize(
    ("mounts", "hidden"),
    [
        ("proc /proc proc rw,nosuid,hidepid=2,gid=27 0 0\n", "2"),
        ("proc /proc proc rw,relatime 0 0\ntmpfs /tmp tmpfs rw 0 0\n", ""),
        ("proc /proc proc rw,hidepid=invisible 0 0\n", "invisible"),
        ("x /mnt/hidepid=2 ext4 rw 0 0\n", ""),
    ],
)
def test_hidepid_is_read_from_the_mounts(mounts, hidden):
    assert machine.hidepid(mounts) == hidden


def test_the_defaults_are_judged_by_the_node_s_own_limits():
    node = NodeSettings()
    assert findings.terminals(node.min_free_ptys - 1, 1, node.min_free_ptys).verdict is FAIL
