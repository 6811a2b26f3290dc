import pytest

from fabric.core import ids
from fabric.core.errors import InvalidRequestError

MINTS = [
    (ids.new_session_id, "ses_"), (ids.new_owner_id, "own_"), (ids.new_task_id, "tsk_"),
    (ids.new_slot_id, "slt_"), (ids.new_request_id, "req_"),
]  # fmt: skip


@pytest.mark.parametrize(("mint", "prefix"), MINTS)
def test_ids_have_a_prefix_and_never_repeat(mint, prefix):
    minted = {mint() for _ in range(200)}
    assert len(minted) == 200
    assert all(text.startswith(prefix) and len(text) == 20 for text in minted)


@pytest.mark.parametrize(
    ("parse", "mint"),
    [
        (ids.parse_session_id, ids.new_session_id),
        (ids.parse_owner_id, ids.new_owner_id),
        (ids.parse_task_id, ids.new_task_id),
    ],
)
def test_minted_ids_parse_and_others_do_not(parse, mint):
    text = mint()
    assert parse(text) == text
    for wrong in ("", "1", text[:-1], text + "a", text.upper(), "xyz" + text[3:], text + "\n"):
        with pytest.raises(InvalidRequestError) as caught:
            parse(wrong)
        assert caught.value.metadata["field"]


def test_a_wrong_id_is_shown_shortened():
    with pytest.raises(InvalidRequestError) as caught:
        ids.parse_session_id("x" * 5000)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("text", ["a", "build-1", "~", "x" * 128])
def test_labels_are_printable_ascii(text):
    assert ids.parse_label(text, "name") == text


@pytest.mark.parametrize("text", ["", "a b", "x" * 129, "ü", "a\n", "\x1b[m", "a\x00"])
def test_other_labels_are_refused_by_name(text):
    with pytest.raises(InvalidRequestError, match="name must be"):
        ids.parse_label(text, "name")


def test_request_ids_are_labels():
    assert ids.parse_request_id("r-1") == "r-1"
    with pytest.raises(InvalidRequestError, match="request_id"):
        ids.parse_request_id("")
