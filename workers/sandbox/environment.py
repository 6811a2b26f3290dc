"""Build the environment of a session from nothing.

Four layers, later wins:

1. of the service's own variables those that the allow-list names (globs), minus every name
   that looks like a credential, minus what steers a program behind its user's back;
2. what a program may rely on: PATH, HOME, USER, LOGNAME, SHELL of the account, and a UTF-8
   locale, also when the service itself runs in C;
3. the session's own variables (terminal, prompt, marks of the fabric);
4. the caller's explicit ones, which may name anything but ``FABRIC_*``: the caller knows what
   it hands over, and those names are how a program knows where it runs.

Names decide, values are not searched for secrets, with one exception: the user part of an
inherited address (``http://user:password@proxy``) is cut out. The address stays, so a program
says that the proxy wants a password instead of hanging on a direct connection.

Pure: mappings in, a dict out.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase

from fabric.core.errors import InvalidRequestError
from fabric.core.redact import names_a_secret
from workers.sandbox.account import Account

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
UTF8_LOCALE = "C.UTF-8"
MAX_ENTRY_BYTES = 131_071  # the kernel's limit for one string handed to a program

SERVICE_PREFIXES = ("RAY_", "GRPC_", "FABRIC_")
RESERVED_PREFIX = "FABRIC_"
# Never inherited, whatever the allow-list says: they load code into programs, change how a
# shell reads, or describe the login the service was started from.
_STEERING = (
    "LD_PRELOAD", "LD_AUDIT", "LD_DEBUG*", "DYLD_*", "PYTHON*", "PERL5OPT", "RUBYOPT",
    "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "GIT_*", "BASH_*", "ENV", "SHELLOPTS",
    "BASHOPTS", "PROMPT_COMMAND", "PS[0-9]", "IFS", "CDPATH", "GLOBIGNORE", "HIST*", "PWD",
    "OLDPWD", "SHLVL", "_", "LINES", "COLUMNS", "TERM", "TERMCAP", "OMP_NUM_THREADS",
    "SPT_NOENV", "TMUX*", "STY", "SSH_*", "SUDO_*", "DBUS_*", "XDG_RUNTIME_DIR",
    "XDG_SESSION_*", "XDG_SEAT*", "XDG_VTNR", "NOTIFY_SOCKET", "LISTEN_*", "INVOCATION_ID",
    "JOURNAL_STREAM", "KUBERNETES_*", "DOCKER_*", "CONTAINER_HOST",
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_USERINFO = re.compile(r"(?<=://)[^/?#\s]*@")
_LOCALE_NAMES = ("LC_ALL", "LC_CTYPE", "LANG")
_NO_LOGIN = ("nologin", "false", "sync", "shutdown", "halt")


def build(
    ambient: Mapping[str, str],
    session_vars: Mapping[str, str],
    explicit: Iterable[tuple[str, str]],
    allow: Iterable[str],
    *,
    account: Account | None = None,
    utf8_locale: str = UTF8_LOCALE,
    has_locale: Callable[[str], bool] = lambda _: True,
) -> dict[str, str]:
    """Build the environment of one session.

    ``has_locale`` tells whether the node has a locale; one it lacks means ASCII to a program.

    Raises: InvalidRequestError when an explicit variable has no valid name, is reserved,
    holds a NUL character, or is too long for the kernel.
    """
    env = inherit(ambient, allow)
    if account is not None:
        _settle_in(env, ambient, account)
    if not env.get("PATH"):
        env["PATH"] = DEFAULT_PATH
    _speak_utf8(env, utf8_locale, has_locale)
    env.update(session_vars)
    env.update(check_explicit(explicit))
    return env


def inherit(ambient: Mapping[str, str], allow: Iterable[str]) -> dict[str, str]:
    """Take of the service's variables what the allow-list names and the scrub leaves."""
    patterns = tuple(allow)
    return {
        name: _USERINFO.sub("", value)
        for name, value in ambient.items()
        if _NAME.fullmatch(name)
        and any(fnmatchcase(name, pattern) for pattern in patterns)
        and not is_credential(name)
        and not any(fnmatchcase(name, pattern) for pattern in _STEERING)
        and "\0" not in value
    }


def is_credential(name: str) -> bool:
    """Tell whether a name looks like a credential or belongs to the service."""
    upper = name.upper()
    return upper.startswith(SERVICE_PREFIXES) or names_a_secret(name)


def check_explicit(explicit: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Check the caller's own variables. Raises: InvalidRequestError naming the variable."""
    checked: dict[str, str] = {}
    for name, value in explicit:
        if not name or "=" in name or "\0" in name:
            raise InvalidRequestError(
                f"env name {name[:40]!r} must be non-empty, without '=' and NUL", field="env"
            )
        if name.upper().startswith(RESERVED_PREFIX):
            raise InvalidRequestError(
                f"env name {name[:40]!r} is reserved ({RESERVED_PREFIX}*)", field="env"
            )
        if "\0" in value:
            raise InvalidRequestError(
                f"the value of env {name[:40]!r} must not contain NUL", field="env"
            )
        size = len(f"{name}={value}".encode("utf-8", "surrogateescape"))
        if size > MAX_ENTRY_BYTES:
            raise InvalidRequestError(
                f"env {name[:40]!r} is {size} bytes long, the limit is {MAX_ENTRY_BYTES}",
                field="env",
            )
        checked[name] = value
    return checked


def _settle_in(env: dict[str, str], ambient: Mapping[str, str], account: Account) -> None:
    home = ambient.get("HOME", "")
    if account.switched:
        # The service's own folders mean nothing, or too much, to somebody else.
        private = [
            name
            for name, value in env.items()
            if name == "TMPDIR"
            or (name != "PATH" and len(home) > 1 and value.startswith(home.rstrip("/") + "/"))
        ]
        for name in private:
            del env[name]
    if account.switched or not env.get("HOME", "").startswith("/"):
        env["HOME"] = account.home or "/"
    env["USER"] = env["LOGNAME"] = account.name
    shell = env.get("SHELL", "") if not account.switched else ""
    env["SHELL"] = next(
        (
            candidate
            for candidate in (shell, account.shell)
            if candidate.startswith("/") and candidate.rpartition("/")[2] not in _NO_LOGIN
        ),
        "/bin/sh",
    )


def _speak_utf8(env: dict[str, str], locale: str, has_locale: Callable[[str], bool]) -> None:
    for name in [*_LOCALE_NAMES, *(name for name in env if name.startswith("LC_"))]:
        value = env.get(name)
        if value is not None and value and not (_is_utf8(value) and has_locale(value)):
            env[name] = locale
    if not any(env.get(name) for name in _LOCALE_NAMES):
        env["LANG"] = locale


def _is_utf8(locale: str) -> bool:
    charset = locale.partition(".")[2].partition("@")[0]
    return charset.replace("-", "").lower() == "utf8"
