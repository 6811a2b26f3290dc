"""What the operator's files say about each other and about the code."""

import plistlib
import re

from fabric.actors.labels import LABEL_ARCH, LABEL_HOST, LABEL_OS, PTY_RESOURCE
from fabric.actors.rayenv import FLAGS
from tests.support.paths import ROOT

CLUSTER = ROOT / "cluster"


def test_every_script_that_a_file_names_is_there():
    named = set()
    for path in CLUSTER.rglob("*"):
        if path.suffix in (".yaml", ".service", ".plist"):
            named |= set(re.findall(r"cluster/bin/([a-z-]+)", path.read_text()))
            named |= set(re.findall(r"args: \[(start-[a-z]+)", path.read_text()))
    assert {"start-head", "start-node", "start-gateway", "start-ray"} <= named
    for name in named:
        assert (CLUSTER / "bin" / name).stat().st_mode & 0o111, name


def test_ray_that_others_start_gets_the_flags_of_our_own_nodes():
    script = (CLUSTER / "bin" / "start-ray").read_text()
    exported = dict(re.findall(r"^export (RAY_\w+)=([\w.]+)$", script, re.MULTILINE))
    assert FLAGS.items() <= exported.items()
    for word in (LABEL_HOST, LABEL_OS, LABEL_ARCH, f'\\"{PTY_RESOURCE}\\"'):
        assert word in script


def test_the_mac_s_unit_is_a_property_list():
    row = plistlib.loads((CLUSTER / "launchd" / "pty-fabric-node.plist").read_bytes())
    assert row["ProgramArguments"][0].endswith("/start-node")
    assert row["EnvironmentVariables"]["PTY_FABRIC"]
