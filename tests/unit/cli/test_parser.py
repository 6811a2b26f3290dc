import pytest

from fabric.cli.hints import HINTS
from fabric.cli.main import COMMANDS
from fabric.cli.parser import build, flags_of, keys_below, variables_of
from fabric.core.errors import InvalidRequestError, error_classes
from fabric.core.model import SignalName


def parse(*argv):
    return build().parse_args(argv)


def test_every_command_has_a_place_in_the_code():
    (action,) = [item for item in build()._actions if item.dest == "command"]
    assert set(action.choices) == set(COMMANDS)


@pytest.mark.parametrize(
    "argv",
    [
        (), ("nonsense",), ("send", "ses_x"), ("signal", "ses_x", "SIGFOO"),
        ("read", "x", "--count", "y"),
        ("open", "--mode", "root"), ("open", "--timeout", "-1"),
        ("send", "s", "t", "--timeout", "inf"),
        ("config",), ("list", "extra"), ("open", "--nonsense"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_typed_errors_with_a_hint(argv):
    with pytest.raises(InvalidRequestError) as caught:
        parse(*argv)
    assert "--help" in caught.value.metadata["hint"]
    assert caught.value.exit_code == 2


def test_common_options_may_stand_before_or_after_the_command():
    for argv in (
        ("--json", "-q", "--agent", "a", "list"),
        ("list", "--json", "-q", "--agent", "a"),
    ):
        arguments = parse(*argv)
        assert (arguments.json, arguments.quiet, arguments.agent) == (True, True, "a")
    assert parse("--agent", "a", "list", "--agent", "b").agent == "b"


@pytest.mark.parametrize("text", ["SIGINT", "sigint", "INT", "int"])
def test_signals_by_any_of_their_names(text):
    assert parse("signal", "s", text).signal is SignalName.SIGINT


def test_text_after_two_dashes_is_text():
    assert parse("send", "s", "--", "-x", "--json").text == ["-x", "--json"]


@pytest.mark.parametrize(
    "words",
    ["ls -la", "git log --oneline", "-n ls", "grep -n x f", "tail --time 3", "ls -qa"],
)
def test_a_word_with_a_dash_in_a_text_is_refused_and_told_where_it_goes(words):
    with pytest.raises(InvalidRequestError) as caught:
        parse("send", "s", *words.split())
    assert "fabric send SESSION -- " in caught.value.metadata["hint"]
    assert parse("send", "s", "--", *words.split()).text == words.split()


@pytest.mark.parametrize("argv", [("list", "--jso"), ("open", "--na", "x"), ("list", "extra")])
def test_what_a_command_does_not_know_is_its_own_fault_and_never_a_short_form(argv):
    with pytest.raises(InvalidRequestError, match="unrecognized arguments") as caught:
        parse(*argv)
    assert caught.value.metadata["hint"] == f"fabric {argv[0]} --help"


def test_settings_on_the_command_line():
    arguments = parse("up", "--set", "log.level=DEBUG", "--set", "a.b=c=d", "--address", "h:1")
    assert flags_of(arguments) == {
        "log.level": "DEBUG", "a.b": "c=d", "cluster.address": "h:1",
    }  # fmt: skip
    with pytest.raises(InvalidRequestError, match="KEY=VALUE"):
        flags_of(parse("up", "--set", "log.level"))


def test_variables_of_a_session():
    assert variables_of(["A=1", "B=", "C=x=y"]) == (("A", "1"), ("B", ""), ("C", "x=y"))
    for wrong, fault in (("A", "'A': must read"), ("=1", "no name before the =")):
        with pytest.raises(InvalidRequestError, match="NAME=VALUE") as caught:
            variables_of([wrong])
        assert fault in caught.value.message


def test_a_variable_without_a_name_never_shows_its_value():
    with pytest.raises(InvalidRequestError) as caught:
        variables_of(["=hunter2"])
    assert "hunter2" not in caught.value.message


def test_keys_below_a_prefix():
    assert keys_below("log") == ["log.level"]
    assert keys_below("log.level") == ["log.level"]
    assert len(keys_below(None)) > 60
    with pytest.raises(InvalidRequestError):
        keys_below("lo")


def test_every_reason_has_a_hint():
    reasons = {cls.reason for cls in error_classes()}
    assert reasons - set(HINTS) - {"SESSION_STATE"} == set()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("open", "--name", "x", "python", "--cwd", "/"), {"type": "python", "name": "x"}),
        (("open", "--name", "x"), {"type": "shell"}),
        (("close", "a", "--json", "b"), {"session": ["a", "b"], "json": True}),
        (("close", "--all"), {"session": [], "all": True}),
        (("config", "show", "-q", "log"), {"what": "show", "key": "log"}),
        (("send", "s", "--timeout", "3", "a", "b"), {"text": ["a", "b"], "timeout": 3.0}),
        (("send", "-q", "s", "a", "--no-submit"), {"session": "s", "text": ["a"]}),
        (("send", "s", "--no-submit", "--", "--json", "x"), {"text": ["--json", "x"]}),
    ],
)
def test_options_may_stand_anywhere(argv, words):
    arguments = vars(parse(*argv))
    assert {key: arguments[key] for key in words} == words
