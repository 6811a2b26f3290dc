import pickle
import re

import pytest

from fabric.core import errors
from fabric.core.errors import FabricError, error_classes, error_of

# Other rooms refine some for themselves (`except`), under the reason they inherit.
CLASSES = [cls for cls in error_classes() if cls.__module__ == errors.__name__]
BASES = {"FabricError", "InternalError", "UnknownReasonError"}


@pytest.mark.parametrize("cls", CLASSES)
def test_survives_pickling_with_its_facts(cls):
    error = cls("a sentence", session_id="ses_1", count=3, nothing=None)
    error.__dict__["extra"] = "kept"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert again.args == ("a sentence",)
    assert again.message == "a sentence"
    assert again.reason == cls.reason
    assert again.metadata == {"session_id": "ses_1", "count": "3"}
    assert again.extra == "kept"


@pytest.mark.parametrize("cls", CLASSES)
def test_reason_has_the_form_of_error_info(cls):
    assert re.fullmatch(r"[A-Z][A-Z0-9_]+[A-Z0-9]", cls.reason)
    assert len(cls.reason) <= 63


@pytest.mark.parametrize("cls", CLASSES)
def test_name_ends_in_error_and_no_builtin_is_reused(cls):
    assert cls.__name__.endswith("Error")
    assert not hasattr(__builtins__, cls.__name__)
    assert cls.__doc__


def test_reasons_are_unique():
    reasons = [cls.reason for cls in CLASSES if cls.__name__ not in BASES]
    assert len(reasons) == len(set(reasons))
    assert "INTERNAL" not in reasons


EXITS = {
    "INTERNAL": 1, "INVALID_REQUEST": 2, "INPUT_TOO_LARGE": 2, "INPUT_LINE_TOO_LONG": 2,
    "INVALID_ARGS": 2, "UNKNOWN_TOOL": 2,
    "REQUEST_ID_CONFLICT": 2, "INVALID_SETTINGS": 2, "SESSION_NOT_FOUND": 3, "SESSION_LOST": 3,
    "TASK_NOT_FOUND": 3, "NODE_NOT_FOUND": 3, "UNAUTHENTICATED": 4, "PERMISSION_DENIED": 4,
    "FOREIGN_SESSION": 4, "OWNER_NOT_LIVE": 4, "NAME_TAKEN": 5, "SESSION_STATE": 5,
    "SEND_ACTIVE": 5, "SESSION_EXITED": 5, "SESSION_CLOSING": 5, "INPUT_BLOCKED": 5,
    "QUEUE_BLOCKED": 5, "NOT_CONTROLLER": 5, "SIGNAL_REFUSED": 5, "SANDBOX_MODE_LOCKED": 5,
    "SANDBOX_UNAVAILABLE": 5, "SPAWN_FAILED": 5, "UNSUPPORTED": 5, "STALE_GENERATION": 5,
    "CURSOR_EXPIRED": 5, "OUTCOME_UNKNOWN": 5, "LIMIT_REACHED": 6, "QUEUE_FULL": 6,
    "CAPACITY_REACHED": 6, "PTY_EXHAUSTED": 6, "REGISTRY_UNAVAILABLE": 7,
    "GATEWAY_UNAVAILABLE": 7, "DRAINING": 7, "STARTUP_TIMEOUT": 8, "DEADLINE": 8,
    "CALL_CANCELLED": 8, "CLEANUP_INCOMPLETE": 9,
}  # fmt: skip


@pytest.mark.parametrize(("reason", "code"), EXITS.items())
def test_exit_code_of_reason(reason, code):
    assert {cls.exit_code for cls in CLASSES if cls.reason == reason} == {code}


def test_only_what_is_unavailable_is_retried():
    retried = {cls.reason for cls in CLASSES if cls.retryable}
    assert retried == {cls.reason for cls in CLASSES if cls.exit_code == 7}


@pytest.mark.parametrize("cls", [c for c in CLASSES if c.__name__ not in BASES])
def test_reason_leads_back_to_the_class(cls):
    error = error_of(cls.reason, "m", {"k": "v"})
    assert type(error) is cls
    assert error.metadata == {"k": "v"}


def test_a_reason_of_a_newer_peer_stays_readable():
    error = error_of("FROM_THE_FUTURE", "m", {"k": "v"})
    assert isinstance(error, FabricError)
    assert error.reason == "FROM_THE_FUTURE"
    assert pickle.loads(pickle.dumps(error)).reason == "FROM_THE_FUTURE"
    assert errors.UnknownReasonError.reason == "INTERNAL", "the class itself is unchanged"


def test_metadata_can_be_added_and_none_is_left_out():
    error = FabricError("m").with_metadata(a=1, b=None)
    assert error.metadata == {"a": "1"}
    assert FabricError().message == "internal error"
