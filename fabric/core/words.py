"""The closed sets of words that the values of ``fabric.core.model`` are made with."""

from enum import StrEnum


class SandboxMode(StrEnum):
    """How a session's file effects are confined; fixed for the life of the PTY."""

    READ_ONLY = "read-only"
    WORKSPACE_WRITE = "workspace-write"
    DANGER_FULL_ACCESS = "danger-full-access"


class Network(StrEnum):
    """Whether a session shares the node's network."""

    SHARED = "shared"
    NONE = "none"


class WaitReason(StrEnum):
    """Why a send settled. PROMPT and CANCELLED occur on the shared surface only."""

    STDIN_READ = "stdin_read"
    INFERRED_IDLE = "inferred_idle"
    TIMEOUT = "timeout"
    SESSION_EXIT = "session_exit"
    HUMAN_HANDOFF = "human_handoff"
    PROMPT = "prompt"
    CANCELLED = "cancelled"


class Evidence(StrEnum):
    """What a verdict rests on."""

    NONE = "none"
    MARKER = "marker"
    SYSCALL = "syscall"
    TERMIOS = "termios"
    SILENCE = "silence"
    DEADLINE = "deadline"
    EXIT = "exit"


class PromptKind(StrEnum):
    """What the program asks for, as far as it can be told."""

    NONE = "none"
    SHELL = "shell"
    CONTINUATION = "continuation"
    LINE = "line"
    PASSWORD = "password"  # noqa: S105  (a kind of prompt, not a secret)
    KEY = "key"


class Outcome(StrEnum):
    """How a send ended for its caller."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class SignalName(StrEnum):
    """The signals a caller may send."""

    SIGINT = "SIGINT"
    SIGTERM = "SIGTERM"
    SIGKILL = "SIGKILL"
    SIGTSTP = "SIGTSTP"
    SIGHUP = "SIGHUP"


class TaskState(StrEnum):
    """The life of a background send."""

    RUNNING = "running"
    STOPPING = "stopping"
    COMPLETED = "completed"
    KILLED = "killed"
    FAILED = "failed"
    LOST = "lost"


class EventKind(StrEnum):
    """What an owner is told without asking."""

    TASK_SETTLED = "task_settled"
    SESSION_EXITED = "session_exited"
    SESSION_LOST = "session_lost"
    SESSION_READOPTED = "session_readopted"
    HUMAN_HANDBACK = "human_handback"
    LEASE_EXPIRING = "lease_expiring"
    OWNER_DISPOSED = "owner_disposed"


class CloseOutcome(StrEnum):
    """Whether this call closed the session or found a close under way."""

    CLOSED = "closed"
    ALREADY_CLOSING = "already-closing"
