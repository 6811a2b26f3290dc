"""What the commands print: results on standard output, everything else on standard error.

Text from elsewhere (names, titles, paths) is shown with control characters escaped, so that
nothing a session is called can move the cursor or paint the reader's terminal.
"""

import json
import os
import sys
import time
import unicodedata
from collections.abc import Mapping
from typing import Any, TextIO

from fabric.core.errors import FabricError
from fabric.core.plain import to_plain

_RED, _DIM, _RESET = "\x1b[31m", "\x1b[2m", "\x1b[0m"


def visible(text: str, *, keep: str = "") -> str:
    """Escape what is not meant to be seen: controls, direction marks, lone surrogates."""
    return "".join(char if char in keep or _is_plain(char) else _escape(char) for char in text)


def _is_plain(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class Output:
    """One command's way to speak: plain text, ``--json`` or ``-q``."""

    def __init__(
        self,
        *,
        as_json: bool = False,
        quiet: bool = False,
        environ: Mapping[str, str] | None = None,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
    ) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self._stdout = stdout or sys.stdout
        self._stderr = stderr or sys.stderr
        environ = os.environ if environ is None else environ
        self._colour = self._stderr.isatty() and not environ.get("NO_COLOR")
        self._began = time.monotonic()

    def result(self, value: Any, text: str, brief: str | None = None) -> None:
        """Print a command's result: as JSON, as its brief form, or as text."""
        if self.as_json:
            self._write(self._stdout, json.dumps(to_plain(value), default=str))
        elif self.quiet and brief is not None:
            if brief:
                self._write(self._stdout, brief)
        else:
            self._write(self._stdout, text)

    def note(self, text: str) -> None:
        """Say something beside the result."""
        if not self.quiet:
            self._write(self._stderr, text)

    def progress(self, text: str) -> None:
        """Say what is being done, with the seconds since the command began."""
        self.note(self._paint(_DIM, f"[{time.monotonic() - self._began:6.1f} s] {text}"))

    def error(self, error: FabricError, hint: str) -> None:
        """Print an error with its reason and what to try."""
        if self.as_json:
            row = {
                "reason": error.reason,
                "message": error.message,
                "metadata": error.metadata,
                "hint": hint,
                "exit_code": error.exit_code,
            }
            self._write(self._stderr, json.dumps({"error": row}))
            return
        message = visible(error.message, keep="\n")
        self._write(self._stderr, f"{self._paint(_RED, 'error:')} {message} [{error.reason}]")
        if hint:
            self._write(self._stderr, f"  try: {hint}")

    def _paint(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_RESET}" if self._colour else text

    @staticmethod
    def _write(stream: TextIO, text: str) -> None:
        # A terminal session may print what the reader's encoding has no character for.
        encoding = stream.encoding or "utf-8"
        safe = text.encode(encoding, "backslashreplace").decode(encoding)
        stream.write(safe if safe.endswith("\n") else safe + "\n")
        stream.flush()
