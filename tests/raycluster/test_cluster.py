"""Embedded clusters: started, found, ended exactly, beside each other."""

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import psutil
import pytest

from fabric.actors import cluster
from fabric.core.errors import SessionStateError, StartupTimeoutError
from fabric.core.settings import ClusterSettings
from tests.support.eventually import eventually_sync

SETTINGS = ClusterSettings(host="h1", start_timeout_s=90)


@pytest.fixture
def state_dirs():
    made = []

    def make():
        made.append(Path(tempfile.mkdtemp(prefix="pfc-")))
        return made[-1]

    yield make
    for folder in made:
        cluster.stop(folder)
        shutil.rmtree(folder)


def answers(embedded):
    host, _, port = embedded.address.rpartition(":")
    with socket.socket() as probe:
        probe.settimeout(5)
        return probe.connect_ex((host, int(port))) == 0


def alive(embedded):
    return [item.pid for item in cluster.marked(embedded.mark)]


def run_elsewhere(text):
    """Run some lines in another process; return what they print."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_listens_on_this_machine_only_and_its_secret_is_private(state_dirs):
    folder = state_dirs()
    said = []
    embedded = cluster.start(SETTINGS, folder, sessions=2, progress=said.append)
    assert said
    assert answers(embedded)
    for pid in alive(embedded):
        for link in psutil.Process(pid).net_connections("inet"):
            if link.status == psutil.CONN_LISTEN:
                assert link.laddr.ip.removeprefix("::ffff:") == "127.0.0.1", link
    assert stat.S_IMODE(Path(embedded.token_file).stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "cluster.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(embedded.temp_dir).stat().st_mode) == 0o700
    assert cluster.read(folder) == embedded
    assert cluster.token_for(folder, embedded.address) == embedded.token_file
    assert cluster.token_for(folder, "10.0.0.1:6379") == ""


def test_a_state_folder_has_one_cluster_at_a_time(state_dirs):
    folder = state_dirs()
    embedded = cluster.start(SETTINGS, folder, sessions=2)
    with pytest.raises(SessionStateError, match=embedded.address):
        cluster.start(SETTINGS, folder, sessions=2)
    assert answers(embedded)


def test_stopping_one_leaves_the_other_alone(state_dirs):
    first_dir, second_dir = state_dirs(), state_dirs()
    first = cluster.start(SETTINGS, first_dir, sessions=2)
    second = cluster.start(SETTINGS, second_dir, sessions=2)
    # What a worker detached is known by its mark alone.
    ours, theirs = (
        subprocess.Popen(
            ["/bin/sleep", "1000"],
            env={cluster.MARK: item.mark},
            start_new_session=True,
        )
        for item in (first, second)
    )
    before = alive(second)
    assert cluster.stop(first_dir) >= 3
    assert ours.wait(5) == -signal.SIGKILL
    assert alive(first) == []
    assert not Path(first.temp_dir).exists()
    assert not answers(first)
    assert alive(second) == before
    assert answers(second)
    theirs.kill()
    theirs.wait()


def test_another_process_can_stop_it_and_stopping_twice_is_fine(state_dirs):
    folder = state_dirs()
    embedded = cluster.start(SETTINGS, folder, sessions=2)
    stopped = run_elsewhere(
        f"""
        from pathlib import Path
        from fabric.actors import cluster
        print(cluster.stop(Path({str(folder)!r})), cluster.stop(Path({str(folder)!r})))
        """
    )
    assert stopped.split()[1] == "0"
    assert alive(embedded) == []
    assert cluster.read(folder) is None


def test_it_lives_on_without_who_started_it_and_is_found_again(state_dirs):
    folder = state_dirs()
    run_elsewhere(
        f"""
        import os
        from pathlib import Path
        from fabric.actors import cluster
        from fabric.core.settings import ClusterSettings
        settings = ClusterSettings(host="h1", start_timeout_s=90)
        cluster.start(settings, Path({str(folder)!r}), sessions=2)
        os._exit(0)
        """
    )
    embedded = cluster.read(folder)
    assert embedded.is_alive
    assert answers(embedded)
    assert cluster.stop(folder) >= 3
    assert alive(embedded) == []


def test_what_a_killed_starter_leaves_is_ended_and_a_new_one_may_start(state_dirs):
    folder = state_dirs()
    embedded = cluster.start(SETTINGS, folder, sessions=2)
    os.kill(embedded.starter.pid, signal.SIGKILL)
    eventually_sync(lambda: not cluster.read(folder).is_alive, within=10)
    again = cluster.start(SETTINGS, folder, sessions=2)
    assert alive(embedded) == []
    assert not Path(embedded.temp_dir).exists()
    assert answers(again)


def test_a_start_that_cannot_succeed_ends_soon_and_leaves_nothing(state_dirs):
    folder = state_dirs()
    impatient = ClusterSettings(host="h1", start_timeout_s=0.05)
    with pytest.raises(StartupTimeoutError, match=r"0\.05 s"):
        cluster.start(impatient, folder, sessions=2)
    assert cluster.read(folder) is None
    assert cluster.stop(folder) == 0


def test_a_process_that_took_a_pid_over_is_nobody_s_member():
    me = psutil.Process()
    assert cluster.Member(me.pid, me.create_time()).alive()
    assert cluster.Member(me.pid, me.create_time() - 100).alive() is None
