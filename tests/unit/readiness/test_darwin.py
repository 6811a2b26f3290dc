import pytest

from workers.readiness.darwin import parse_tpgid


@pytest.mark.parametrize(
    ("text", "group"),
    [(" 8201\n", 8201), ("8190", 8190), ("", None), ("0\n", None), ("-1\n", None),
     ("TPGID\n", None), ("1 2\n", None)],
)  # fmt: skip
def test_the_foreground_group_of_ps(text, group):
    assert parse_tpgid(text) == group
