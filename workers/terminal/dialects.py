r"""How a program is started so that its prompts can be told from its output.

A *dialect* gives the argv, the variables to add to the environment, and the printable
text of the prompts it controls. ``BashDialect`` makes bash print a private mark inside
each prompt; ``PlainDialect`` runs any program as it is, without marks.

Grammar of the marks (``nonce`` is the session's random word, ``status`` is 0-255)::

    ESC ] 133 ; D  ; nonce ; status BEL    before the primary prompt (PS1)
    ESC ] 133 ; P  ; nonce BEL             before the continuation prompt (PS2)
    ESC ] 133 ; C  ; nonce BEL             before a command line is run (PS0)

A sequence with another nonce, or whose status is no number up to 255, is no mark.

How bash is controlled, by environment alone (no file, nothing typed, nothing echoed):

- ``PS1``, ``PS2`` and ``PS0`` carry the marks, so nothing can come between a mark and
  its prompt. ``PROMPT_COMMAND`` carries a *bootstrap* for the first prompt: it switches
  off what corrupts machine-typed text, defines a function that re-asserts the prompts,
  and hangs that function into the array ``PROMPT_COMMAND`` behind whatever a user puts
  at its front (a plain assignment replaces only element 0). Before bash 5.1 there is no
  array, and a plain assignment wins until the next session.
- The prompt function runs as one group with its output discarded: silent under
  ``set -x``, no failure for ``set -e`` or an ERR trap, no word from a read-only variable
  (a prompt is assigned only when it differs, by ``printf -v``, which fails quietly).
  Bash itself keeps ``$?`` and ``$_`` around it.
- None of this reaches children: prompts are un-exported each time, so an inner shell
  prints no mark and is recognised by the next tier instead.
- With ``TERM=dumb`` readline works in horizontal-scroll mode, where a prompt with
  declared invisible text makes it blank and redraw the line at every prompt; there the
  mark stands undeclared (its length counts as width, which only makes a long line
  scroll earlier). Other terminals get the usual declaration.

- Bash 5.2 loses ``PIPESTATUS`` for the whole session when a prompt command runs before
  any other command has set it. So it begins as a plain variable, which bash leaves alone,
  and the first PS1 turns it into an array by an assignment in an arithmetic expansion.

What an inner bash gets. ``bash``, ``bash -i``, ``exec bash`` and ``su`` start without marks:
every send there is settled exactly by the sleep of the shell (``SYSCALL``), in milliseconds,
but as ``prompt_kind`` LINE and without an exit code; ``echo $?`` tells it. Ways to carry the
marks into it, and why none is taken (tried on bash 5.2):

- A start-up file or ``--rcfile``: not inherited, and BASH_ENV is not read by an interactive
  shell, ENV only in POSIX mode. Only PROMPT_COMMAND, PS0, PS1 and PS2 reach it, exported.
- PROMPT_COMMAND exported: bash exports no array, and the array is what lets the prompts
  survive a user's own PROMPT_COMMAND. The one excludes the other, and the outer shell,
  where sessions spend their time, goes first.
- PS1 exported: dash and other shells that take PS1 as it is would print the escapes, and the
  shells that a program in the session drives (pexpect, tmux) would get prompts of ours.
- A function ``bash`` that adds the variables: shows in ``type`` and ``command -v``, which
  scripts rely on, and ``exec`` does not call it; an ``exec`` of ours would undo redirections.

Rejected: a marker from ``PROMPT_COMMAND`` (job notices come between it and the prompt);
a start-up file (left behind by a crash); ``--noediting`` (command lines would be limited
to 4095 bytes). Known limit: ``set -v`` shows the prompt function's name at every prompt.
"""

import shlex
from dataclasses import dataclass
from typing import Protocol

from fabric.core.errors import InvalidRequestError
from fabric.core.model import OpenSpec
from fabric.core.settings import ShellSettings

ARRAY_INDEX = 99  # behind what users put into PROMPT_COMMAND
_MAKE_ARRAY = "${BASH_VERSION:0:$((PIPESTATUS[0]=0))}"  # expands to nothing
_HOOK = "{ __fabric_prompt || :; } >/dev/null 2>&1"


@dataclass(frozen=True, slots=True)
class Prompts:
    """The printable text after a mark, exactly."""

    primary: str
    continuation: str


class Dialect(Protocol):
    """How to start a program and what its prompts look like."""

    @property
    def argv(self) -> tuple[str, ...]:
        """Return the program and its arguments."""
        ...

    @property
    def env(self) -> dict[str, str]:
        """Return the variables to set last, over everything inherited."""
        ...

    @property
    def prompts(self) -> Prompts | None:
        """Return the marked prompts, or None for a program without marks."""
        ...


def terminal_env(session_id: str, term: str) -> dict[str, str]:
    """Return the variables every session gets: terminal type, no pager, the session's id."""
    env = {"TERM": term, "FABRIC_SESSION_ID": session_id}
    if term == "dumb":
        env |= {"PAGER": "cat", "GIT_PAGER": "cat"}
    return env


@dataclass(frozen=True, slots=True)
class PlainDialect:
    """Any program, as it is."""

    argv: tuple[str, ...]
    session_id: str
    term: str = "dumb"

    @property
    def env(self) -> dict[str, str]:
        """Return the variables to set last."""
        return terminal_env(self.session_id, self.term)

    @property
    def prompts(self) -> Prompts | None:
        """Return None: nothing is marked."""
        return None


@dataclass(frozen=True, slots=True)
class BashDialect:
    """An interactive bash (3.2 or later) whose prompts carry marks."""

    nonce: str
    session_id: str
    shell: ShellSettings
    term: str = "dumb"
    args: tuple[str, ...] | None = None

    @property
    def argv(self) -> tuple[str, ...]:
        """Return bash, interactive, without start-up files unless the settings ask for them."""
        if self.args is not None:
            return (self.shell.path, *self.args)
        if self.shell.read_startup_files:
            return (self.shell.path, "-i")
        return (self.shell.path, "--noprofile", "--norc", "-i")

    @property
    def prompts(self) -> Prompts:
        """Return the texts behind the marks."""
        return Prompts(self.shell.prompt, "> ")

    @property
    def env(self) -> dict[str, str]:
        """Return the variables to set last; the bootstrap takes most of them away again."""
        primary, continuation, command = self._marked()
        if self.shell.read_startup_files:  # their commands have set PIPESTATUS
            first = {}
        else:
            first = {"PIPESTATUS": "0"}
            primary = _MAKE_ARRAY + primary
        return (
            terminal_env(self.session_id, self.term)
            | first
            | {
                "BASH_SILENCE_DEPRECATION_WARNING": "1",
                "HISTFILE": "",
                "INPUTRC": "/dev/null",
                "PS1": primary,
                "PS2": continuation,
                "PS0": command,
                "PROMPT_COMMAND": self._bootstrap(),
            }
        )

    def _marked(self) -> tuple[str, str, str]:
        """Build PS1, PS2 and PS0."""
        opening, closing = ("", "") if self.term == "dumb" else (r"\[", r"\]")

        def prompt(mark: str, text: str) -> str:
            return rf"{opening}\e]133;{mark}\a{closing}" + _literal(text)

        texts = self.prompts
        return (
            prompt(f"D;{self.nonce};$?", texts.primary),
            prompt(f"P;{self.nonce}", texts.continuation),
            rf"\e]133;C;{self.nonce}\a",
        )

    def _bootstrap(self) -> str:
        """Build what runs once, before the first prompt."""
        values = [shlex.quote(text) for text in self._marked()]
        asserts = " ".join(
            f'[[ "${{{name}-}}" == {value} ]] || builtin printf -v {name} %s {value};'
            for name, value in zip(("PS1", "PS2", "PS0"), values, strict=True)
        )
        drop = "" if self.shell.read_startup_files else "unset -v PROMPT_COMMAND;"
        hook = shlex.quote(_HOOK)
        return (
            '{ [[ -n "${__fabric_up-}" ]] || {'
            " set +H; unset -v HISTFILE MAILCHECK TMOUT;"
            " bind 'set disable-completion on'; bind 'set enable-bracketed-paste off';"
            " bind 'set bell-style none'; bind 'set input-meta on';"
            " bind 'set output-meta on'; bind 'set convert-meta off';"
            " unset -v INPUTRC; export -n PIPESTATUS; stty -ixon;"
            " __fabric_prompt() {"
            f" builtin shopt -s promptvars; {asserts}"
            " builtin export -n PS0 PS1 PS2 PROMPT_COMMAND; return 0; };"
            f" {drop}"
            " if (( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501 ));"
            f" then PROMPT_COMMAND[{ARRAY_INDEX}]={hook}; else PROMPT_COMMAND={hook}; fi;"
            " export -n PS0 PS1 PS2 PROMPT_COMMAND; __fabric_up=1; }; } >/dev/null 2>&1"
        )


def _literal(text: str) -> str:
    """Escape a prompt's text for both expansions bash makes of it (escapes, then variables)."""
    text = text.replace("\\", "\\\\" * 2)
    return text.replace("$", "\\\\$").replace("`", "\\\\`")


def dialect_for(
    spec: OpenSpec,
    shell: ShellSettings,
    nonce: str,
    shell_args: tuple[str, ...] | None = None,
) -> Dialect:
    """Choose how to start what ``spec`` asks for. Raises: InvalidRequestError."""
    if spec.argv is not None:
        return PlainDialect(spec.argv, spec.session_id, spec.term)
    if spec.type == "shell":
        return BashDialect(nonce, spec.session_id, shell, spec.term, shell_args)
    for row in shell.programs:
        name, _, command = row.partition("=")
        if name.strip() == spec.type:
            return PlainDialect(tuple(shlex.split(command)), spec.session_id, spec.term)
    known = ", ".join(["shell", *(row.partition("=")[0].strip() for row in shell.programs)])
    raise InvalidRequestError(f"no session type {spec.type!r}; there are: {known}", type=spec.type)
