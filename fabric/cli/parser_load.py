"""The arguments of ``fabric load`` and ``fabric top``."""

from typing import Any

from fabric.core.model import SandboxMode

_SCENARIOS = "echo, repl, build, task, churn, human"


def add_load_command(command: Any) -> None:
    """Add the command to the parser."""
    load = command("load", "put load on a fabric and judge it; exit code 10 when a mark is missed")
    load.add_argument(
        "words", nargs="*", metavar="WORD", help="run (default), compare A B, report A"
    )
    load.add_argument("--plan", metavar="FILE", help="a TOML file with [load] and [marks]")
    load.add_argument("--out", metavar="FILE", help="write the result as JSON")
    load.add_argument("--html", metavar="FILE", help="write it as a page with plots")
    load.add_argument(
        "--scenario", metavar="NAME[=WEIGHT]", action="append", help=f"repeats; {_SCENARIOS}"
    )
    for name, kind, text in (
        ("owners", int, "how many owners"),
        ("sessions", int, "sessions of each owner"),
        ("processes", int, "client processes to share the owners"),
        ("turns", int, "end after so many turns"),
        ("seed", int, "of think times and arrivals"),
        ("build-lines", int, "lines of one build"),
        ("pollers", int, "further readers of a task's output"),
    ):
        load.add_argument(f"--{name}", type=kind, metavar="N", help=text)
    for name, text in (
        ("duration", "how long the run lasts"),
        ("warmup", "not counted at the beginning"),
        ("ramp", "users begin, or the rate grows, over this time"),
        ("think", "closed loop: mean pause between a user's turns"),
        ("pace", "closed loop: a fixed beat instead"),
        ("task", "length of a background task"),
    ):
        load.add_argument(
            f"--{name}", dest=f"{name}_s", type=_count_of_seconds, metavar="S", help=text
        )
    load.add_argument("--rate", type=float, metavar="R", help="open loop: turns a second in all")
    load.add_argument("--spacing", choices=["poisson", "even"], help="of an open loop's arrivals")
    load.add_argument(
        "--mode", choices=[mode.value for mode in SandboxMode], help="how the sessions are confined"
    )
    load.add_argument("--title", help="of the report")
    load.add_argument(
        "--allowed", type=float, default=10.0, metavar="PERCENT", help="compare: no change (10)"
    )


def add_top_command(command: Any) -> None:
    """Add the command to the parser."""
    top = command("top", "show nodes, owners, sessions, rates and latencies as they are now")
    top.add_argument(
        "--metrics", metavar="HOST:PORT", action="append", default=[],
        help="a gateway's metrics; repeats; else the local fabric's",
    )  # fmt: skip
    top.add_argument(
        "--interval", type=_interval, default=2.0, metavar="S", help="between two looks (2)"
    )
    top.add_argument("--once", action="store_true", help="print one view and end")


def _interval(text: str) -> float:
    value = float(text)
    if not 0.1 <= value <= 3600:
        raise ValueError(text)
    return value


_interval.__name__ = "number of seconds from 0.1 to 3600"


def _count_of_seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1e7:
        raise ValueError(text)
    return value


_count_of_seconds.__name__ = "number of seconds"
