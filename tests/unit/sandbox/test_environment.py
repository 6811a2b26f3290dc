import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.core.errors import InvalidRequestError
from fabric.core.settings import SandboxSettings
from workers.sandbox.account import Account
from workers.sandbox.environment import (
    DEFAULT_PATH,
    MAX_ENTRY_BYTES,
    build,
    check_explicit,
    inherit,
    is_credential,
)

ALLOW = SandboxSettings().env_allow
ME = Account(1000, 1000, (), "me", "/h/me", "/bin/zsh")
SOMEBODY = Account(2000, 2000, (), "bot", "/h/bot", "/usr/sbin/nologin", switched=True)


def made(ambient=None, session=None, explicit=(), allow=ALLOW, **facts):
    return build(ambient or {}, session or {}, explicit, allow, **facts)


def test_only_what_the_allow_list_names_is_inherited():
    env = made({"LC_TIME": "C.UTF-8", "HOME": "/h", "SHELL_LEVEL": "x", "BC_PLAIN": "1"})
    assert env["LC_TIME"] == "C.UTF-8"
    assert "SHELL_LEVEL" not in env
    assert "BC_PLAIN" not in env


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "mistral_api_key",
        "MY_SECRET_THING", "DB_PASSWORD", "MYSQL_PASSWD", "GOOGLE_APPLICATION_CREDENTIALS",
        "RAY_AUTH_MODE", "RAY_JOB_ID", "GRPC_VERBOSITY", "FABRIC_CONFIG", "fabric_x", "Ray_x",
    ],
)  # fmt: skip
def test_credentials_and_names_of_the_service_are_scrubbed_even_if_allowed(name):
    assert is_credential(name)
    assert name not in made({name: "v"}, allow=("*",))


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD", "LD_AUDIT", "PYTHONBREAKPOINT", "PYTHONPATH", "OMP_NUM_THREADS", "BASH_ENV",
        "BASH_FUNC_ls%%", "PROMPT_COMMAND", "PS1", "SHELLOPTS", "TERM", "TMUX", "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "SPT_NOENV", "PWD", "_", "COLUMNS",
        "GIT_SSH_COMMAND", "NODE_OPTIONS", "DYLD_INSERT_LIBRARIES",
    ],
)  # fmt: skip
def test_what_steers_programs_is_never_inherited(name):
    assert name not in inherit({name: "v"}, ("*",))


def test_layers_later_wins():
    env = made(
        {"EDITOR": "vi", "PATH": "/bin"},
        {"EDITOR": "cat", "TERM": "dumb", "FABRIC_SESSION_ID": "ses_a"},
        [("EDITOR", "ed"), ("MY_TOKEN", "mine"), ("RAY_ADDRESS", "chosen")],
    )
    assert env["EDITOR"] == "ed"
    assert env["MY_TOKEN"] == "mine"
    assert env["RAY_ADDRESS"] == "chosen"
    assert env["FABRIC_SESSION_ID"] == "ses_a"
    assert env["PATH"] == "/bin"


@pytest.mark.parametrize("name", ["", "A=B", "A\0B", "FABRIC_X", "fabric_x"])
def test_a_bad_or_reserved_name_is_refused(name):
    with pytest.raises(InvalidRequestError):
        check_explicit([(name, "v")])


def test_a_bad_value_is_refused_and_not_repeated():
    with pytest.raises(InvalidRequestError, match="NUL") as caught:
        check_explicit([("A", "hidden\0")])
    assert "hidden" not in str(caught.value)
    with pytest.raises(InvalidRequestError, match="limit is"):
        check_explicit([("A", "x" * MAX_ENTRY_BYTES)])
    longest = "x" * (MAX_ENTRY_BYTES - 2)
    assert check_explicit([("A", longest)]) == {"A": longest}


@pytest.mark.parametrize(
    ("ambient", "expected"),
    [
        ({}, {"LANG": "C.UTF-8"}),
        ({"LANG": "C"}, {"LANG": "C.UTF-8"}),
        ({"LANG": ""}, {"LANG": "C.UTF-8"}),
        ({"LANG": "de_DE.UTF-8"}, {"LANG": "de_DE.UTF-8"}),
        ({"LANG": "de_DE.utf8@euro"}, {"LANG": "de_DE.utf8@euro"}),
        ({"LANG": "de_DE"}, {"LANG": "C.UTF-8"}),
        ({"LANG": "fr_FR.UTF-8"}, {"LANG": "C.UTF-8"}),  # not installed
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "POSIX"}, {"LANG": "de_DE.UTF-8", "LC_ALL": "C.UTF-8"}),
        ({"LC_CTYPE": "UTF-8"}, {"LC_CTYPE": "C.UTF-8"}),
        ({"LC_TIME": "en_DK.ISO-8859-1"}, {"LC_TIME": "C.UTF-8", "LANG": "C.UTF-8"}),
    ],
)
def test_the_locale_is_always_utf8(ambient, expected):
    env = made(ambient, has_locale=lambda name: not name.startswith("fr_"))
    assert {key: env[key] for key in env if key == "LANG" or key.startswith("LC_")} == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("http://me:pw@proxy:3128", "http://proxy:3128"),
        ("http://me:p@w@proxy:3128/x", "http://proxy:3128/x"),
        ("http://token@proxy", "http://proxy"),
        ("http://proxy:3128", "http://proxy:3128"),
    ],
)
def test_the_user_part_of_an_inherited_address_is_cut_out(value, expected):
    assert made({"HTTPS_PROXY": value})["HTTPS_PROXY"] == expected
    assert made(explicit=[("HTTPS_PROXY", value)])["HTTPS_PROXY"] == value


def test_a_program_finds_what_it_may_rely_on():
    env = made(account=ME)
    assert env["PATH"] == DEFAULT_PATH
    assert (env["HOME"], env["USER"], env["LOGNAME"], env["SHELL"]) == (
        "/h/me", "me", "me", "/bin/zsh",
    )  # fmt: skip


def test_the_home_of_the_service_is_kept_for_its_own_account():
    assert made({"HOME": "/tmp/h"}, account=ME)["HOME"] == "/tmp/h"
    assert made({"HOME": "relative"}, account=ME)["HOME"] == "/h/me"


def test_another_account_gets_nothing_of_the_services_folders():
    env = made(
        {
            "HOME": "/h/me", "USER": "me", "SHELL": "/bin/zsh", "TMPDIR": "/var/tmp/me",
            "CARGO_HOME": "/h/me/.cargo", "JAVA_HOME": "/opt/java", "PATH": "/h/me/bin:/bin",
        },
        account=SOMEBODY,
    )  # fmt: skip
    assert (env["HOME"], env["USER"], env["SHELL"]) == ("/h/bot", "bot", "/bin/sh")
    assert "CARGO_HOME" not in env
    assert "TMPDIR" not in env
    assert env["JAVA_HOME"] == "/opt/java"
    assert env["PATH"] == "/h/me/bin:/bin"


def test_a_shell_nobody_can_log_in_to_is_replaced():
    nobody = Account(65534, 65534, (), "nobody", "", "/usr/sbin/nologin")
    env = made(account=nobody)
    assert (env["SHELL"], env["HOME"]) == ("/bin/sh", "/")


def test_names_no_shell_can_hold_are_dropped():
    assert inherit({"A.B": "1", "1A": "2", "": "3", "A": "x\0y"}, ("*",)) == {}


@given(
    st.dictionaries(st.text(max_size=20), st.text(max_size=20)),
    st.sampled_from(["KEY", "Secret", "tOKEN", "PASSWORD", "passwd", "Credential"]),
    st.text(alphabet="ABC_abc", max_size=5),
    st.text(alphabet="ABC_abc", max_size=5),
)
def test_no_credential_ever_passes(ambient, word, before, after):
    name = f"{before}{word}{after}"
    env = made({**ambient, name: "canary-value"}, allow=("*",))
    assert "canary-value" not in env.values()
