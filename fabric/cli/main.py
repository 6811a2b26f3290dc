"""The command ``fabric``: parse, run one command, turn an error into an exit code."""

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from importlib import metadata

from fabric.cli.context import INTERRUPTED, Context
from fabric.cli.hints import hint_for
from fabric.cli.output import Output
from fabric.cli.parser import build
from fabric.core.errors import FabricError

# Each command's module is imported only when it runs: `fabric --help` needs no gRPC and no Ray.
COMMANDS = {
    "up": "fabric.cli.lifecycle:up",
    "down": "fabric.cli.lifecycle:down",
    "status": "fabric.cli.lifecycle:status",
    "serve": "fabric.cli.serving:serve",
    "doctor": "fabric.cli.doctor:doctor",
    "drain": "fabric.cli.upkeep:drain",
    "upgrade": "fabric.cli.upkeep:upgrade",
    "config": "fabric.cli.configuration:config",
    "tools": "fabric.cli.tools:tools",
    "mcp": "fabric.cli.mcp:mcp",
    "replay": "fabric.cli.replay:replay",
    "nodes": "fabric.cli.terminals:nodes",
    "open": "fabric.cli.terminals:open_session",
    "send": "fabric.cli.terminals:send",
    "read": "fabric.cli.terminals:read",
    "signal": "fabric.cli.terminals:signal",
    "close": "fabric.cli.terminals:close",
    "attach": "fabric.cli.attach:attach",
    "view": "fabric.cli.view:view",
    "tasks": "fabric.cli.tasks:list_tasks",
    "output": "fabric.cli.tasks:output",
    "kill": "fabric.cli.tasks:kill",
    "wait": "fabric.cli.tasks:wait",
    "events": "fabric.cli.tasks:events",
    "token": "fabric.cli.credentials:token",
    "tls": "fabric.cli.credentials:tls",
    "list": "fabric.cli.terminals:list_sessions",
    "load": "fabric.cli.load:load",
    "top": "fabric.cli.top:top",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given == ["--version"]:
        sys.stdout.write(f"pty-fabric {metadata.version('pty-fabric')}\n")
        return 0
    # The way to speak must be known before the arguments are parsed: parsing can fail.
    output = Output(as_json="--json" in given, quiet="-q" in given or "--quiet" in given)
    try:
        arguments = build().parse_args(given)
        output = Output(
            as_json=getattr(arguments, "json", False), quiet=getattr(arguments, "quiet", False)
        )
        module, _, name = COMMANDS[arguments.command].partition(":")
        command = getattr(importlib.import_module(module), name)
        return int(command(Context(arguments, output, os.environ)))
    except FabricError as error:
        output.error(error, hint_for(error))
        return error.exit_code
    except KeyboardInterrupt:
        output.note("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone; there is nobody left to tell.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
