"""The arguments of the command line."""

import argparse
from typing import Any, NoReturn

from fabric.cli.parser_load import add_load_command, add_top_command
from fabric.core.errors import InvalidRequestError
from fabric.core.model import SandboxMode, SignalName
from fabric.core.sources import known_keys

_SIGNALS = {name.value.removeprefix("SIG"): name for name in SignalName}
_MODES = [mode.value for mode in SandboxMode]
_DASHES = "words of the text that begin with a dash go after two: fabric send SESSION -- ls -la"


class _Parser(argparse.ArgumentParser):
    """Reports a wrong argument as an error of ours, so that --json and hints hold for it too."""

    intermixed = False
    advice = ""  # what to try before the help

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse all of it; who is asked about a word too many is the command it was given to."""
        known, rest = self.parse_known_args(args, namespace)
        if rest:
            command: _Parser = getattr(known, "parser", self)
            command.error(f"unrecognized arguments: {' '.join(rest)}")
        return known

    def parse_known_args(  # type: ignore[override]
        self, args: Any = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse; a command's words may stand before, between and after its options."""
        if not self.intermixed:
            return super().parse_known_args(args, namespace)
        self.intermixed = False
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self.intermixed = True

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing and leaving."""
        hint = f"{self.prog} --help"
        raise InvalidRequestError(message, hint=f"{self.advice}; {hint}" if self.advice else hint)


def build() -> argparse.ArgumentParser:
    """Build the whole parser."""
    common = _common()
    parser = _Parser(
        prog="fabric",
        description="Owned, persistent terminals for agents, spread over a Ray cluster.",
        epilog="Results go to standard output, everything else to standard error. Environment: "
        "FABRIC_GATEWAY, FABRIC_TOKEN or FABRIC_TOKEN_FILE, FABRIC_CA_FILE (TLS), FABRIC_AGENT, "
        "FABRIC_STATE_DIR, FABRIC_CONFIG, and FABRIC_<SECTION>__<KEY> for every setting.",
        parents=[common],
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            parents=[common],
            allow_abbrev=False,  # a short form taken today is another option's name tomorrow
        )
        made.intermixed = True
        made.set_defaults(parser=made)
        return made

    _add_fabric_commands(command)
    _add_session_commands(command)
    _add_credential_commands(command, common)
    _add_model_commands(command)
    add_load_command(command)
    add_top_command(command)
    return parser


def _common() -> _Parser:
    """Options of every command; they may stand before or after its name."""
    common = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    group = common.add_argument_group("options of every command")
    group.add_argument("--json", action="store_true", help="print the result as one JSON object")
    group.add_argument("-q", "--quiet", action="store_true", help="print only the id or the text")
    group.add_argument("--config", metavar="FILE", help="settings (TOML); else FABRIC_CONFIG")
    group.add_argument(
        "--set", metavar="KEY=VALUE", action="append", help="one setting, e.g. log.level=DEBUG"
    )
    group.add_argument(
        "--state-dir", metavar="DIR", help="where a local fabric keeps its state; FABRIC_STATE_DIR"
    )
    group.add_argument(
        "--gateway", metavar="HOST:PORT", help="the gateway to call; FABRIC_GATEWAY, else the local"
    )
    group.add_argument("--agent", metavar="NAME", help="whose sessions; FABRIC_AGENT, else cli")
    return common


def _add_fabric_commands(command: Any) -> None:
    up = command("up", "start a fabric: a one-machine cluster and a gateway, or join a cluster")
    up.add_argument("--address", metavar="HOST:PORT", help="join this running Ray cluster")
    up.add_argument("-d", "--detach", action="store_true", help="return when it is ready")
    up.add_argument("--announce-fd", type=int, default=-1, help=argparse.SUPPRESS)

    command("down", "stop the fabric that up started, with its sessions")
    command("status", "say what runs here and how to reach it")

    command("doctor", "check this machine and the fabric: what is wrong, why, what to do")

    serve = command("serve", "run one gateway of a running cluster (up does this for you)")
    serve.add_argument("--address", metavar="HOST:PORT", help="the Ray cluster")
    serve.add_argument("--announce-fd", type=int, default=-1, help=argparse.SUPPRESS)

    command("nodes", "list the nodes with what is left of them")

    drain = command("drain", "let a node take no new sessions, and wait for those it has to end")
    drain.add_argument("node", help="its host name")
    drain.add_argument(
        "--limit", type=_seconds, metavar="S", default=600.0, help="wait no longer than this (600)"
    )
    drain.add_argument("--close", action="store_true", help="then close what is left")
    drain.add_argument("--undo", action="store_true", help="let it take sessions again")
    upgrade = command("upgrade", "restart registry, nodes, workers and gateway under live sessions")
    upgrade.add_argument(
        "--limit", type=_seconds, metavar="S", default=60.0,
        help="how long to wait for a busy session before its worker is left as it is (60)",
    )  # fmt: skip

    config = command("config", "show the settings")
    config.add_argument(
        "what", choices=["show", "example"], help="show: effective values; example: a TOML file"
    )
    config.add_argument("key", nargs="?", help="only this key, or the keys below it")


def _add_session_commands(command: Any) -> None:
    opening = command("open", "open a session and print its id")
    opening.add_argument("type", nargs="?", default="shell", help="shell (default), python, ...")
    opening.add_argument("--name", help="a name, unique among this agent's sessions")
    opening.add_argument("--cwd", metavar="DIR", help="where it starts, on the node")
    opening.add_argument(
        "--env", metavar="NAME=VALUE", action="append", default=[], help="a variable of the session"
    )
    opening.add_argument("--mode", choices=_MODES, help="how this agent's sessions are confined")
    opening.add_argument("--os", help="only a node with this system, e.g. linux")
    opening.add_argument("--host", help="only this node")
    opening.add_argument("--rows", type=int)
    opening.add_argument("--cols", type=int)
    opening.add_argument("--term", help="the TERM variable (dumb); to attach: xterm-256color")
    opening.add_argument("--run", metavar="COMMAND", help="what to type right after start-up")
    opening.add_argument("--timeout", type=_seconds, metavar="S", help="how long it may take")

    send = command("send", "type text, wait until the program wants input again, print its output")
    _session(send)
    send.advice = _DASHES
    send.add_argument(
        "text", nargs="+",
        help="the text; several words are joined; - reads stdin; words with a dash go after --",
    )  # fmt: skip
    send.add_argument("--no-submit", action="store_true", help="do not press Enter after it")
    send.add_argument("--timeout", type=_seconds, metavar="S", help="give the verdict after this")

    read = command("read", "print scrollback, counted back from the newest line")
    _session(read)
    read.add_argument("--offset", type=int, default=0, help="lines to skip from the newest (0)")
    read.add_argument("--count", type=int, default=500, help="lines to print (500)")

    signal = command("signal", "signal the foreground process group")
    _session(signal)
    signal.add_argument("signal", type=_signal, help=", ".join(f"SIG{name}" for name in _SIGNALS))

    send.add_argument("--background", action="store_true", help="return at once with a task's id")
    _add_task_commands(command)

    attach = command("attach", "use a session in this terminal, as a person; its keys, its screen")
    _session(attach)
    attach.add_argument("--read-only", action="store_true", help="only look: no keys, no resize")
    attach.add_argument(
        "--detach-key", default="Ctrl-]", metavar="KEY", help="leaves the session running (Ctrl-])"
    )

    view = command("view", "print a link to a terminal for a browser, and open it")
    view.add_argument("session", nargs="?", help="one session, read-only; else the shared terminal")
    view.add_argument("--overview", action="store_true", help="the list of this agent's sessions")
    view.add_argument("--read-only", action="store_true", help="a view that never controls")
    view.add_argument("--no-open", action="store_true", help="only print the link")

    close = command("close", "close sessions and wait until their processes have ended")
    close.add_argument("session", nargs="*", help="ids (ses_...) or names")
    close.add_argument("--all", action="store_true", help="every session of this agent")

    command("list", "list this agent's sessions")


def _add_model_commands(command: Any) -> None:
    tools = command("tools", "print the tools a model gets; --json with their schemas")
    tools.add_argument(
        "--surface",
        action="append",
        default=[],
        choices=["terminal", "task", "pty", "shared_terminal"],
        help="only this family; may be repeated",
    )
    replay = command("replay", "play a recorded terminal (asciicast) in this one")
    replay.add_argument("file", help="a .cast file of the setting worker.transcript.dir")
    replay.add_argument("--speed", type=_seconds, default=1.0, metavar="X", help="so much faster")
    replay.add_argument(
        "--idle", type=_seconds, default=5.0, metavar="S", help="shorten longer pauses to this (5)"
    )
    replay.add_argument("--no-wait", action="store_true", help="print it all at once")
    mcp = command("mcp", "serve the tools to an MCP client, over standard input and output")
    mcp.add_argument("--http", metavar="HOST:PORT", help="over streamable HTTP instead")
    mcp.add_argument("--insecure", action="store_true", help="HTTP beyond loopback without TLS")
    mcp.add_argument(
        "--idle", type=_seconds, metavar="S", default=1800.0, help="HTTP: end an idle owner (1800)"
    )
    mcp.add_argument("--mode", choices=_MODES, help="how the sessions are confined")
    mcp.add_argument(
        "--surface",
        action="append",
        default=[],
        choices=["terminal", "task", "pty", "shared_terminal"],
        help="only this family of tools; may be repeated",
    )


def _add_task_commands(command: Any) -> None:
    command("tasks", "list this agent's background sends")
    output = command("output", "print what a background send has printed")
    output.add_argument("task", help="its id (tsk_...)")
    output.add_argument("--wait", action="store_true", help="until it ends")
    output.add_argument("--timeout", type=_seconds, metavar="S", help="wait no longer than this")
    kill = command("kill", "interrupt a background send")
    kill.add_argument("task", help="its id (tsk_...)")

    wait = command("wait", "wait for a session: the first of the conditions; exit code 8 if none")
    _session(wait)
    wait.add_argument("pattern", nargs="?", help="a regular expression (RE2) on the output")
    wait.add_argument("--quiet-s", type=_seconds, metavar="S", help="no output for so long")
    wait.add_argument("--ready", action="store_true", help="the program wants input")
    wait.add_argument("--exit", action="store_true", help="the session's program has ended")
    wait.add_argument("--since", type=int, metavar="OFFSET", help="look from this byte on")
    wait.add_argument("--timeout", type=_seconds, metavar="S")

    events = command("events", "print this agent's events as they come")
    events.add_argument("--since", type=int, metavar="N", help="after this event; 0: all kept")
    events.add_argument("--count", type=int, metavar="N", help="end after so many")
    events.add_argument("--acknowledge", action="store_true", help="let the fabric forget them")


def _add_credential_commands(command: Any, common: _Parser) -> None:
    token = command("token", "make and withdraw signed bearer tokens")
    token.intermixed = False
    acts = token.add_subparsers(dest="what", metavar="ACTION", required=True)
    create = acts.add_parser("create", help="sign a token and print it", parents=[common])
    create.add_argument("--principal", required=True, help="whose token it is")
    create.add_argument("--max-mode", choices=_MODES, help="the most its sessions may do")
    create.add_argument("--ttl", default="30d", help="how long it counts: 90, 30m, 8h, 30d (30d)")
    revoke = acts.add_parser("revoke", help="make tokens count no more", parents=[common])
    revoke.add_argument("id", nargs="+", help="a token's id, a token, or principal:NAME")
    revoke.add_argument("--revoked-file", metavar="FILE", help="else gateway.revoked_file")
    keys = acts.add_parser(
        "keys", help="list the signing keys, or change them", parents=[common],
        description="Two keys are active at most: the first signs, both verify.",
    )  # fmt: skip
    keys.add_argument("--rotate", action="store_true", help="sign with a new key from now on")
    keys.add_argument("--drop", metavar="NAME", help="make one key's tokens void")
    for each in (create, keys):
        each.add_argument(
            "--signing-key-file", metavar="FILE", help="else gateway.signing_key_file"
        )

    tls = command("tls", "make TLS certificates for development")
    tls.add_argument("what", choices=["dev-ca"], help="a CA, a server's certificate, callers'")
    tls.add_argument("--out", metavar="DIR", help="else tls in the state folder")
    tls.add_argument("--host", action="append", default=[], help="a name of the server; repeats")
    tls.add_argument("--client", action="append", default=[], help="a principal; repeats")
    tls.add_argument("--days", type=int, default=30)


def _session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", help="its id (ses_...) or its name")


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e7:
        raise ValueError(text)
    return value


_seconds.__name__ = "number of seconds"


def _signal(text: str) -> SignalName:
    name = _SIGNALS.get(text.upper().removeprefix("SIG"))
    if name is None:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(SignalName)}")
    return name


def flags_of(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the settings given on the command line. Raises: InvalidRequestError."""
    flags = {}
    for row in getattr(arguments, "set", []):
        key, equals, value = row.partition("=")
        if not equals:
            raise InvalidRequestError(f"--set {row!r}: must read KEY=VALUE")
        flags[key.strip()] = value
    if getattr(arguments, "address", None):
        flags["cluster.address"] = arguments.address
    return flags


def variables_of(rows: list[str]) -> tuple[tuple[str, str], ...]:
    """Return the variables given with --env. Raises: InvalidRequestError."""
    pairs = []
    for row in rows:
        name, equals, value = row.partition("=")
        if not equals:
            raise InvalidRequestError(f"--env {name!r}: must read NAME=VALUE")
        if not name:
            raise InvalidRequestError("--env: there is no name before the =; it reads NAME=VALUE")
        pairs.append((name, value))
    return tuple(pairs)


def keys_below(prefix: str | None) -> list[str]:
    """Return the known settings that are or lie below a key. Raises: InvalidRequestError."""
    names = [key.name for key in known_keys()]
    if prefix is None:
        return names
    found = [name for name in names if name == prefix or name.startswith(f"{prefix}.")]
    if not found:
        raise InvalidRequestError(f"no setting is called {prefix!r}")
    return found
