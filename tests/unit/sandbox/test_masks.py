from pathlib import Path

from workers.sandbox import masks
from workers.sandbox.account import Account
from workers.sandbox.masks import existing, of_service, outermost, sockets_of

ME = Account(1000, 1000, (1000, 50), "me", "/h/me", "/bin/sh")
TABLE = """Num       RefCount Protocol Flags    Type St Inode Path
0000: 00000002 00000000 00010000 0001 01  1073 /run/docker.sock
0000: 00000002 00000000 00010000 0001 01  1074 @/tmp/.X11-unix/X0
0000: 00000003 00000000 00000000 0001 03  1075
0000: 00000002 00000000 00010000 0001 01  1076 /tmp/with space/s
0000: 00000002 00000000 00010000 0001 01  1077 /var/lib/sss/pipes/nss
0000: 00000002 00000000 00010000 0001 01  1078 /run/docker.sock
"""


def test_bound_sockets_are_read_from_the_table():
    assert sockets_of(TABLE) == ["/run/docker.sock", "/tmp/with space/s"]
    assert sockets_of("") == []


def test_masks_in_masks_are_dropped():
    assert outermost([("/a/b", False), ("/a", True), ("/ab", True), ("/a", True)]) == (
        ("/a", True),
        ("/ab", True),
    )
    assert outermost([("/a", False), ("/a/b", False)]) == (("/a", False), ("/a/b", False))


def test_rays_files_are_known_by_default_and_by_environment():
    found = of_service({"RAY_AUTH_TOKEN_PATH": "/etc/ray/token", "RAY_TMPDIR": "x"}, "/h/me/")
    assert found == ("/h/me/.ray", "/tmp/ray", "/etc/ray/token")


def test_only_existing_paths_are_masked_links_resolved(tmp_path: Path):
    (tmp_path / "dir").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    paths = [str(tmp_path / name) for name in ("dir", "file", "link", "gone")]
    assert existing(paths, ME, lambda *_: True) == (
        (str(tmp_path / "dir"), True),
        (str(tmp_path / "file"), False),
    )


def test_what_the_account_cannot_get_to_needs_no_mask(tmp_path: Path):
    assert existing([str(tmp_path)], ME, lambda folder, _: folder != "/") == ()


def test_searching_by_mode(tmp_path: Path):
    facts = tmp_path.stat()
    owner = Account(facts.st_uid, 1, (), "o", "/", "")
    group = Account(facts.st_uid + 1, 1, (facts.st_gid,), "g", "/", "")
    other = Account(facts.st_uid + 1, 1, (facts.st_gid + 1,), "x", "/", "")
    for mode, expected in ((0o700, (True, False, False)), (0o071, (False, True, True))):
        tmp_path.chmod(mode)
        found = tuple(masks._may_search(str(tmp_path), who) for who in (owner, group, other))
        assert found == expected
    tmp_path.chmod(0o700)
    assert not masks._may_search(str(tmp_path / "gone"), owner)


def test_a_missing_table_means_no_sockets(tmp_path: Path):
    assert masks.listening_sockets(tmp_path / "no") == ()
