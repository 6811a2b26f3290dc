"""Every escape attempt, in every confined mode, by every sandbox, as root and as nobody.

One sandbox is started for each way to be confined; all attempts run in it, one process each,
and each is a subtest of its own. Afterwards the world outside must be unchanged.
"""

import ast
import contextlib

import pytest

from fabric.core.model import SandboxMode
from tests.terminal.sandbox.world import ATTEMPTS, Way, World

WAYS = [
    Way(kind, mode, switched)
    for kind in ("bubblewrap", "landlock")
    for mode in (SandboxMode.READ_ONLY, SandboxMode.WORKSPACE_WRITE)
    for switched in (False, True)
]
NAMES = [
    node.name
    for module in ("hidden", "kernel", "processes", "writing")
    for node in ast.parse((ATTEMPTS / f"{module}.py").read_text()).body
    if isinstance(node, ast.FunctionDef) and node.decorator_list
]
# What Landlock cannot forbid where the workspace needs the calls: reported as partial, and
# listed in the room's README. Any other gap fails the test.
GAPS = {
    "change_a_mode", "change_a_mode_by_descriptor", "change_a_mode_by_the_newest_call",
    "change_an_owner", "change_times", "change_attributes", "change_flags",
    "connect_to_a_masked_socket", "connect_to_a_masked_socket_relatively",
    "connect_to_another_programs_socket", "write_shared_memory_of_another",
}  # fmt: skip
GAPS_SEEN = {
    "the victim file's mode changed", "the shim socket was reached", "the other socket was reached",
    "shared memory changed", "/tmp was written to",
}  # fmt: skip


def test_there_are_enough_attempts():
    assert len(NAMES) >= 100


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_nothing_gets_out(way, subtests):
    is_partial = way.kind == "landlock" and way.writes
    with contextlib.ExitStack() as stack:
        world = World(way, stack)
        outcomes, confinement = world.attempt_all()
        damage = world.damage()
    for name, outcome in outcomes.items():
        with subtests.test(name):
            # One that dies of its own mistake would prove nothing.
            assert not outcome["how"] or outcome["how"].startswith("E")
            if not (is_partial and name in GAPS):
                assert outcome["escaped"] is None
    assert list(outcomes) == NAMES
    assert [row for row in damage if not (is_partial and row in GAPS_SEEN)] == []
    open_here = {name for name, outcome in outcomes.items() if outcome["escaped"]}
    assert bool(open_here) == confinement.partial == is_partial


def test_the_attempts_succeed_without_a_sandbox():
    """The same attempts, unconfined: what must work there works, so they do try."""
    with contextlib.ExitStack() as stack:
        world = World(Way("none", SandboxMode.DANGER_FULL_ACCESS), stack)
        outcomes, confinement = world.attempt_all(*HARMLESS_WHEN_OPEN)
    assert confinement.kind == "none"
    assert [name for name, outcome in outcomes.items() if not outcome["escaped"]] == []


HARMLESS_WHEN_OPEN = [
    "write_a_file", "write_through_a_link", "create_through_a_linked_folder",
    "write_by_proc_self_root", "write_by_proc_self_cwd", "write_by_an_old_descriptor",
    "reopen_a_read_descriptor_for_writing", "truncate_a_file", "change_a_mode",
    "change_a_mode_by_descriptor", "change_a_mode_by_the_newest_call", "change_an_owner",
    "change_times", "change_flags", "signal_a_process", "signal_a_group", "signal_by_descriptor",
    "signal_by_proc", "read_the_memory_of_a_process", "steal_a_descriptor",
    "read_the_environment_of_a_process", "read_any_environment",
    "open_the_descriptors_of_a_process", "write_the_memory_file_of_a_process",
    "read_a_masked_file_in_a_folder", "read_a_masked_file", "read_a_masked_file_through_a_link",
    "connect_to_a_masked_socket", "connect_to_a_masked_socket_relatively",
    "connect_to_another_programs_socket", "connect_to_an_abstract_socket",
    "write_shared_memory_of_another", "read_a_key_of_the_session_keyring", "store_a_key",
    "open_another_terminal", "read_another_terminal", "open_any_terminal", "rename_race",
    "exchange_folders",
]  # fmt: skip
