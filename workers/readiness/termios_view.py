"""What a terminal's settings say about its reader.

Reading them on the master gives the settings of the slave, on Linux and macOS alike.
Canonical mode means the kernel collects whole lines; without echo that is how a password
is asked for (getpass, sudo, ssh, ``read -s``). Without canonical mode the program edits
the line itself or takes single keys, and the settings alone do not always tell which:
readline and libedit leave signals on and take the carriage return as it is (ISIG on,
ICRNL off), which no pager, menu or full-screen program does; node, IPython and others
also take the signals and are told from full-screen programs by name, and from programs
that take a single key by the output processing they leave on (OPOST).
"""

import sys
import termios
from dataclasses import dataclass
from typing import Any

from fabric.core.model import PromptKind

CANONICAL_LIMIT = 1024 if sys.platform == "darwin" else 4095
LINE_EDITORS = frozenset(
    {
        "bash", "zsh", "fish", "ksh", "node", "deno", "bun", "python", "ipython", "ptpython",
        "bpython", "gdb", "lldb", "jdb", "irb", "pry", "ghci", "julia", "R", "octave", "psql",
        "mysql", "mariadb", "sqlite3", "mongosh", "redis-cli", "jshell", "scala", "iex", "erl",
        "lua", "luajit", "ocaml", "utop", "sbcl", "guile", "php", "mongo", "pdb", "nodejs",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TermiosView:
    """The settings that matter here; ``timeout_s`` is that of a raw read without minimum."""

    canonical: bool
    echo: bool
    signals: bool
    cr_is_newline: bool
    ignore_cr: bool
    processes_output: bool
    flow_control: bool
    line_ends: bytes
    signal_chars: bytes
    line_kill: bytes
    timeout_s: float | None = None


def view_of(attributes: list[Any]) -> TermiosView:
    """Read the result of ``tcgetattr``."""
    iflag, oflag, _, lflag, _, _, chars = attributes
    canonical = bool(lflag & termios.ICANON)

    def char(index: int) -> bytes:
        value = chars[index]
        code = value if isinstance(value, bytes) else bytes([value])
        return b"" if code in (b"\x00", b"\xff") else code

    timeout = None
    if not canonical and _number(chars[termios.VMIN]) == 0:
        timeout = _number(chars[termios.VTIME]) / 10
    ends = b"\n" + char(termios.VEOF) + char(termios.VEOL) + char(termios.VEOL2)
    return TermiosView(
        canonical=canonical,
        echo=bool(lflag & termios.ECHO),
        signals=bool(lflag & termios.ISIG),
        cr_is_newline=bool(iflag & termios.ICRNL),
        ignore_cr=bool(iflag & termios.IGNCR),
        processes_output=bool(oflag & termios.OPOST),
        flow_control=bool(iflag & termios.IXON),
        line_ends=ends if canonical else b"",
        signal_chars=char(termios.VINTR) + char(termios.VQUIT) + char(termios.VSUSP),
        line_kill=char(termios.VKILL) if canonical else b"",
        timeout_s=timeout,
    )


def read_view(fd: int) -> TermiosView | None:
    """Read the settings of the terminal behind ``fd``; None when it is gone."""
    try:
        return view_of(termios.tcgetattr(fd))
    except (termios.error, OSError):
        return None


def is_line_editor(view: TermiosView, names: frozenset[str]) -> bool:
    """Tell whether a raw reader edits lines: by its settings, else by its program's name."""
    if view.canonical or view.echo or view.cr_is_newline:
        return False
    return view.signals or (view.processes_output and _is_known(names))


def _is_known(names: frozenset[str]) -> bool:
    return any(name in LINE_EDITORS or name.startswith("python") for name in names)


def kind_of(canonical: bool | None, echo: bool | None, *, line_editor: bool) -> PromptKind:
    """Name what a proved reader asks for."""
    if canonical is None:
        return PromptKind.NONE
    if canonical:
        return PromptKind.LINE if echo else PromptKind.PASSWORD
    return PromptKind.LINE if line_editor else PromptKind.KEY


def wakes_reader(data: bytes, view: TermiosView) -> bool:
    """Tell whether this input could end a wait of the reader (a whole line, a signal, ...)."""
    if not data:
        return False
    if not view.canonical:
        return True
    ends = view.line_ends + (view.signal_chars if view.signals else b"")
    if view.cr_is_newline and not view.ignore_cr:
        ends += b"\r"
    return any(byte in ends for byte in data)


def longest_line(data: bytes, view: TermiosView, open_bytes: int) -> tuple[int, int]:
    """Measure the longest line the kernel would have to collect, and what stays open.

    ``open_bytes`` is what an unfinished line already holds. Line ends are not counted.
    Returns 0, 0 outside canonical mode, where there is no such limit.
    """
    if not view.canonical:
        return 0, 0
    ends = view.line_ends + view.line_kill + (view.signal_chars if view.signals else b"")
    if view.cr_is_newline or view.ignore_cr:
        ends += b"\r"
    table = bytes(10 if byte in ends else 46 for byte in range(256))
    lines = data.translate(table).split(b"\n")
    lengths = [len(line) for line in lines]
    lengths[0] += open_bytes
    return max(lengths), lengths[-1]


def _number(value: Any) -> int:
    return value if isinstance(value, int) else ord(value)
