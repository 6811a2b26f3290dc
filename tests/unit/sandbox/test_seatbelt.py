from fabric.core.model import Network, SandboxMode
from workers.sandbox.policy import Folder, ResolvedPolicy
from workers.sandbox.seatbelt import PROGRAM, profile, wrap


def policy(mode, network=Network.SHARED):
    return ResolvedPolicy(mode, network, Folder('/U/me/a "b"', 1, 2), "/U/me")


def test_read_only_denies_every_write_but_harmless_devices():
    text = profile(writable=0, masked=0, read_only=True, network=Network.SHARED)
    lines = text.splitlines()
    assert lines[:3] == ["(version 1)", "(allow default)", "(deny file-write*)"]
    assert '(literal "/dev/null")' in text
    assert "subpath" not in text
    assert "ptmx" not in text


def test_workspace_write_allows_the_roots_after_the_denial():
    text = profile(writable=2, masked=0, read_only=False, network=Network.SHARED)
    assert text.index("(deny file-write*)") < text.index('(param "WRITABLE_0")')
    assert '(param "WRITABLE_1")' in text


def test_masks_come_last_and_cover_reading_writing_and_connecting():
    text = profile(writable=1, masked=1, read_only=False, network=Network.SHARED)
    assert text.index("WRITABLE_0") < text.index("MASKED_0")
    assert '(deny file-read* file-write* (subpath (param "MASKED_0")))' in text
    assert '(deny network-outbound (subpath (param "MASKED_0")))' in text


def test_no_network():
    assert "(deny network*)" in profile(writable=0, masked=0, read_only=True, network=Network.NONE)
    assert "(deny network*)" not in profile(
        writable=0, masked=0, read_only=True, network=Network.SHARED
    )


def test_parentheses_balance():
    text = profile(writable=3, masked=3, read_only=False, network=Network.NONE)
    assert text.count("(") == text.count(")")


def test_paths_are_parameters_and_never_text_of_the_profile():
    argv = wrap(policy(SandboxMode.WORKSPACE_WRITE), ("bash", "-i"), ["/state"], ["/private/tmp"])
    assert argv[:2] == (PROGRAM, "-p")
    assert "/U/me" not in argv[2]
    assert 'WRITABLE_0=/U/me/a "b"' in argv
    assert "WRITABLE_1=/private/tmp" in argv
    assert "MASKED_0=/state" in argv
    assert argv[-3:] == ("--", "bash", "-i")


def test_read_only_has_no_writable_root():
    argv = wrap(policy(SandboxMode.READ_ONLY), ("bash",), [], ["/private/tmp"])
    assert not any(word.startswith("WRITABLE") for word in argv)
