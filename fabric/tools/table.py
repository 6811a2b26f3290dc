"""The table of tools: everything a harness shows its model is made from these rows."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from fabric.core.model import SignalName
from fabric.tools.schema import Param, schema_of
from fabric.tools.values import VALUES


class Surface(StrEnum):
    """The families of tools."""

    TERMINAL = "terminal"
    TASK = "task"
    PTY = "pty"
    SHARED = "shared_terminal"


class Card(StrEnum):
    """How a user interface shows a call: a terminal, or a generic card of a kind."""

    TERMINAL = "terminal"
    EXECUTE = "generic/execute"
    READ = "generic/read"
    DELETE = "generic/delete"


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: what the model reads, what it may pass, how it is shown, what it calls."""

    name: str
    surface: Surface
    description: str
    params: tuple[Param, ...]
    card: Card
    title: str
    rpc: str
    read_only: bool = False
    destructive: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The closed JSON Schema of the arguments."""
        return schema_of(self.params)

    @property
    def value_schema(self) -> dict[str, Any]:
        """The schema of the value beside the text of a call that did not fail."""
        return VALUES[self.name]


_PTY = Param("id", "string", "The id that pty_open returned.", required=True)


def _session(name: str = "sessionId") -> Param:
    return Param(name, "string", "The id that terminal_open returned.", required=True)


_TASK_ID = Param("task_id", "string", "The id that the background send returned.", required=True)
_BACKGROUND = Param(
    "run_in_background",
    "boolean",
    "Return a task id at once; collect the output with task_output.",
    default=False,
)
_SUBMIT = Param("submit", "boolean", "Press Enter after the text.", default=True)

TOOLS: tuple[Tool, ...] = (
    Tool(
        "terminal_open",
        Surface.TERMINAL,
        "Open a persistent terminal session and return its id and what it printed first.",
        (
            Param("type", "string", "What to run, normally shell.", required=True),
            Param("name", "string", "A label, unique among your sessions."),
            Param("cwd", "string", "Working directory; default: the workspace root."),
        ),
        Card.EXECUTE,
        "Open terminal {name_or_type}",
        "fabric.api.v1.TerminalService/Open",
    ),
    Tool(
        "terminal_send",
        Surface.TERMINAL,
        "Type text into a session, press Enter unless submit is false, and wait until the "
        "program wants input again, goes quiet, times out or exits. Only wait: stdin_read says "
        "that it surely waits for input; inferred_idle and timeout are no proof of an end.",
        (
            _session(),
            Param("text", "string", "Text to type, verbatim; may be empty.", required=True),
            _SUBMIT,
            _BACKGROUND,
        ),
        Card.TERMINAL,
        "{text}",
        "fabric.api.v1.TerminalService/Send",
        destructive=True,
    ),
    Tool(
        "terminal_read",
        Surface.TERMINAL,
        "Read a page of a session's scrollback, counted back from the newest line.",
        (
            _session(),
            Param("offset", "integer", "Lines to skip from the newest.", minimum=0, default=0),
            Param("count", "integer", "Lines to return.", minimum=1, default=500),
        ),
        Card.READ,
        "Read terminal {sessionId}",
        "fabric.api.v1.TerminalService/Read",
        read_only=True,
    ),
    Tool(
        "terminal_signal",
        Surface.TERMINAL,
        "Send a signal to the foreground program of a session.",
        (
            _session(),
            Param(
                "signal",
                "string",
                "The signal.",
                required=True,
                choices=tuple(name.value for name in SignalName),
            ),
        ),
        Card.EXECUTE,
        "Signal terminal {sessionId}",
        "fabric.api.v1.TerminalService/Signal",
        destructive=True,
    ),
    Tool(
        "terminal_wait",
        Surface.TERMINAL,
        "Wait beside a session, without typing, until a pattern appears in its output, it goes "
        "quiet, wants input, or exits. A timeout is an ordinary answer with the output so far.",
        (
            _session(),
            Param("pattern", "string", "An RE2 expression to find in the output."),
            Param("quiet_ms", "integer", "Milliseconds without output.", minimum=1),
            Param("ready", "boolean", "Until the program wants input.", default=False),
            Param("exit", "boolean", "Until the session exits.", default=False),
            Param("since_offset", "integer", "Byte offset to look from; default: now.", minimum=0),
            Param("timeout_ms", "integer", "How long at most.", minimum=1, default=30_000),
        ),
        Card.READ,
        "Wait for terminal {sessionId}",
        "fabric.api.v1.TerminalService/WaitFor",
        read_only=True,
    ),
    Tool(
        "terminal_close",
        Surface.TERMINAL,
        "Close a session and end every process it started.",
        (_session(),),
        Card.DELETE,
        "Close terminal {sessionId}",
        "fabric.api.v1.TerminalService/Close",
        destructive=True,
    ),
    Tool(
        "terminal_list",
        Surface.TERMINAL,
        "List your sessions.",
        (),
        Card.READ,
        "List terminal sessions",
        "fabric.api.v1.TerminalService/List",
        read_only=True,
    ),
    Tool(
        "task_output",
        Surface.TASK,
        "Read what is new of a background task, waiting for its end if asked.",
        (
            _TASK_ID,
            Param("wait", "boolean", "Wait for the task's end.", default=False),
            Param("timeout_ms", "integer", "How long to wait at most, with wait."),
        ),
        Card.READ,
        "Read task {task_id}",
        "fabric.api.v1.TaskService/Output",
        read_only=True,
    ),
    Tool(
        "task_list",
        Surface.TASK,
        "List your background tasks.",
        (),
        Card.READ,
        "List background tasks",
        "fabric.api.v1.TaskService/List",
        read_only=True,
    ),
    Tool(
        "task_kill",
        Surface.TASK,
        "Interrupt a background task with a real SIGINT.",
        (_TASK_ID, Param("reason", "string", "Why, for the record.")),
        Card.EXECUTE,
        "Stop task {task_id}",
        "fabric.api.v1.TaskService/Kill",
        destructive=True,
    ),
    Tool(
        "pty_open",
        Surface.PTY,
        "Run a command on a terminal of its own, for programs that stay and are talked to: "
        "debuggers, REPLs, remote shells. Returns its id and what it printed until it settled.",
        (
            Param("command", "string", "The command line to run.", required=True),
            Param("cwd", "string", "Working directory; default: the workspace root."),
            Param("env", "object", "Variables exported before the command, in order."),
        ),
        Card.EXECUTE,
        "{command}",
        "fabric.api.v1.TerminalService/Open",
    ),
    Tool(
        "pty_send",
        Surface.PTY,
        "Write to a session, followed by Enter unless submit is false, and return what it "
        "printed while the write settled. Bytes are written exactly as given.",
        (
            _PTY,
            Param("data", "string", "What to write; may be empty.", required=True),
            Param("submit", "boolean", "Press Enter after it.", default=True),
        ),
        Card.TERMINAL,
        "{data}",
        "fabric.api.v1.TerminalService/Send",
    ),
    Tool(
        "pty_tail",
        Surface.PTY,
        "Read the whole lines that are new since the last tail. A line without its end, such "
        "as a prompt, comes with a later tail. truncated: more was new than lines allows.",
        (
            _PTY,
            Param("lines", "integer", "How many lines at most.", minimum=1),
        ),
        Card.READ,
        "Tail terminal {id}",
        "fabric.api.v1.PtyService/Tail",
    ),
    Tool(
        "pty_close",
        Surface.PTY,
        "End a session and every process it started. Closing it again does nothing.",
        (_PTY,),
        Card.DELETE,
        "Close terminal {id}",
        "fabric.api.v1.TerminalService/Close",
        destructive=True,
    ),
    Tool(
        "shared_terminal_send",
        Surface.SHARED,
        "Type text into the terminal you share with a person, press Enter unless submit is "
        "false, and wait. waitReason: prompt, the command is over; stdin_read, a program wants "
        "input; human_handoff, a person has taken the program over: it still runs, so wait for "
        "the notice and read before anything else; timeout and cancelled, it was interrupted, "
        "which is no proof that it ended; session_exit, the shell ended.",
        (
            Param("text", "string", "Text to type, verbatim; may be empty.", required=True),
            Param("submit", "boolean", "Press Enter after the text.", default=True),
        ),
        Card.TERMINAL,
        "{text}",
        "fabric.api.v1.SharedTerminalService/Send",
        destructive=True,
    ),
    Tool(
        "shared_terminal_read",
        Surface.SHARED,
        "Read the shared terminal's screen and a page of the history above it, counted back "
        "from the newest line. It never waits, also while a person is typing.",
        (
            Param("offset", "integer", "Lines to skip from the newest.", minimum=0, default=0),
            Param("count", "integer", "Lines to return.", minimum=1, default=500),
        ),
        Card.READ,
        "Read the shared terminal",
        "fabric.api.v1.SharedTerminalService/Read",
        read_only=True,
    ),
    Tool(
        "shared_terminal_signal",
        Surface.SHARED,
        "Send a signal to the foreground program of the shared terminal.",
        (
            Param(
                "signal",
                "string",
                "The signal.",
                required=True,
                choices=tuple(name.value for name in SignalName),
            ),
        ),
        Card.EXECUTE,
        "Signal the shared terminal",
        "fabric.api.v1.SharedTerminalService/Signal",
        destructive=True,
    ),
    Tool(
        "shared_terminal_reset",
        Surface.SHARED,
        "End every process of the shared terminal and start a new shell. Needed after the "
        "shell ended, and when the queue is blocked.",
        (),
        Card.DELETE,
        "Reset the shared terminal",
        "fabric.api.v1.SharedTerminalService/Reset",
        destructive=True,
    ),
)

GUIDANCE = """\
Terminals are for state that must persist between calls or for programs that ask for input:
shells with a directory and variables, REPLs, debuggers. Prefer one-shot tools for anything
else. Keep the id of every session you open and close it when you are done.
After terminal_send, wait: stdin_read means that the program surely waits for input;
inferred_idle means only that it went quiet, timeout only that time ran out: neither proves
that a command ended. Read again, wait with terminal_wait, or interrupt with terminal_signal."""

BACKGROUND_GUIDANCE = """
A command that runs long belongs in the background: run_in_background returns a task id at
once, a notice says when the task has ended, task_output gives what it printed, and task_kill
interrupts it."""

SHARED_GUIDANCE = """
The shared terminal is one shell that a person sees and may type into. human_handoff means that
the person holds a program that still runs: type nothing more, wait for the notice that they have
handed it back, and read the terminal before you go on. Never answer in the person's place.
A blocked queue is freed by shared_terminal_reset only."""


def guidance_of(surfaces: frozenset[Surface], *, background: bool) -> str:
    """Return the text for a model's system prompt that fits the tools of ``tools_of``."""
    has_tasks = background and Surface.TASK in surfaces
    shared = SHARED_GUIDANCE if Surface.SHARED in surfaces else ""
    return GUIDANCE + (BACKGROUND_GUIDANCE if has_tasks else "") + shared


def describe(surfaces: frozenset[Surface], *, background: bool) -> dict[str, Any]:
    """Give the whole model-facing surface as plain data: tools, schemas, guidance."""
    rows = [
        {
            "name": tool.name,
            "surface": tool.surface.value,
            "description": tool.description,
            "parameters": tool.schema,
            "value": tool.value_schema,
            "card": tool.card.value,
            "title": tool.title,
            "readOnly": tool.read_only,
            "destructive": tool.destructive,
            "rpc": tool.rpc,
        }
        for tool in tools_of(surfaces, background=background)
    ]
    return {"guidance": guidance_of(surfaces, background=background), "tools": rows}


def tools_of(surfaces: frozenset[Surface], *, background: bool) -> tuple[Tool, ...]:
    """List the tools of some families; without ``background`` nothing mentions it."""
    chosen = []
    for tool in TOOLS:
        if tool.surface not in surfaces or (tool.surface is Surface.TASK and not background):
            continue
        if not background:
            params = tuple(param for param in tool.params if param is not _BACKGROUND)
            tool = replace(tool, params=params)
        chosen.append(tool)
    return tuple(chosen)
