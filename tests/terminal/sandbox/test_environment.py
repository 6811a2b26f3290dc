"""A service full of secrets starts a session; the session prints all it can see."""

import json
import os

import pytest

from fabric.core.model import SandboxMode
from fabric.core.settings import SandboxSettings
from tests.terminal.sandbox.world import PYTHON, OnTerminal, Way, command_for, plan_for
from workers.sandbox.account import account_of, has_locale
from workers.sandbox.environment import build

SECRETS = {
    "OPENAI_API_KEY": "bc-canary-1", "GITHUB_TOKEN": "bc-canary-2",
    "AWS_SECRET_ACCESS_KEY": "bc-canary-3", "mistral_api_key": "bc-canary-4",
    "MY_SECRET_THING": "bc-canary-5", "DB_PASSWORD": "bc-canary-6", "RAY_AUTH_TOKEN": "bc-canary-7",
    "RAY_AUTH_MODE": "bc-canary-8", "GRPC_TRACE": "bc-canary-9", "FABRIC_CONFIG": "bc-canary-10",
    "HTTPS_PROXY": "http://me:bc-canary-11@proxy:3128", "SSH_AUTH_SOCK": "/tmp/bc-canary-12",
    "LD_PRELOAD_X": "bc-canary-13", "PYTHONBREAKPOINT": "bc-canary-14",
}  # fmt: skip
LOOK = """
import glob, json, locale, os, signal, sys
def text(path):
    try:
        return open(path, 'rb').read().decode(errors='replace')
    except OSError:
        return ''
print('@' + json.dumps({
    'env': dict(os.environ),
    'seen': ''.join(text(p) for p in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline')),
    'fds': sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n)),
    'charset': locale.nl_langinfo(locale.CODESET) if locale.setlocale(locale.LC_ALL, '') else '',
    'encoding': sys.stdout.encoding,
    'blocked': sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
}))
"""  # noqa: E501
WAYS = [
    Way("bubblewrap", SandboxMode.READ_ONLY),
    Way("bubblewrap", SandboxMode.WORKSPACE_WRITE, switched=True),
    Way("landlock", SandboxMode.READ_ONLY, switched=True),
    Way("none", SandboxMode.DANGER_FULL_ACCESS),
]


@pytest.fixture
def service(monkeypatch):
    for name, value in {**SECRETS, "BC_PLAIN": "bc-plain"}.items():
        monkeypatch.setenv(name, value)
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_no_secret_of_the_service_is_seen(way, service, tmp_path):
    env = build(
        os.environ,
        {"TERM": "dumb", "FABRIC_SESSION_ID": "ses_a"},
        [("MINE", "mine")],
        SandboxSettings().env_allow,
        account=account_of("65534" if way.switched else None),
        has_locale=has_locale,
    )
    launch = plan_for(way, "/usr", (PYTHON, "-I", "-c", LOOK), env=env)
    owner = 65534 if way.switched else os.geteuid()
    with OnTerminal(command_for(way, launch), launch.env, owner, "/") as child:
        text = child.read_all()
    seen = json.loads(text[text.index("@") + 1 :])
    values = json.dumps(seen["env"])
    assert "bc-canary" not in values
    assert "bc-plain" not in values
    if way.kind == "bubblewrap":  # its own processes are all there is
        assert "bc-canary" not in seen["seen"]
    assert seen["env"]["MINE"] == "mine"
    assert seen["env"]["FABRIC_SESSION_ID"] == "ses_a"
    assert [number for number in seen["fds"] if number > 2] == []
    assert seen["charset"] == "UTF-8"
    assert seen["encoding"] == "utf-8"
    assert seen["blocked"] == []
    assert seen["env"]["HOME"]
    assert seen["env"]["SHELL"].startswith("/")


def test_locales_are_asked_of_the_machine():
    assert has_locale("C.UTF-8")
    assert not has_locale("xx_YY.UTF-8")
    assert not has_locale("a\0b")
