"""The values that travel between the rooms.

Plain frozen dataclasses: sizes in bytes, times in seconds as float, wall times in
seconds since 1970. Everything here can be turned into plain data and back with
``fabric.core.plain``, so it may hold only strings, bytes, numbers, booleans, None,
enums, other such dataclasses, and tuples of these.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from fabric.core.ids import AgentId, HostName, OwnerId, Principal, RequestId, SessionId, TaskId


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


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls a session: the owner and the epoch of its token."""

    owner_id: OwnerId
    epoch: int


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a process ended: a code, or a signal, or neither when it cannot be known.

    ``detail`` names a cause found beside the status, such as ``oom``.
    """

    exit_code: int | None = None
    signal: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """Running while ``exit`` is None."""

    exit: ExitStatus | None = None

    @property
    def is_running(self) -> bool:
        """Tell whether the top-level process lives."""
        return self.exit is None


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a session is really confined by.

    ``limits`` names the limits in force (memory, pids, cpu_weight), ``unmet_limits`` those
    that were asked for and that this node cannot set.
    """

    mode: SandboxMode
    network: Network = Network.SHARED
    kind: str = "none"  # none, bubblewrap, landlock, seatbelt
    partial: bool = False
    workspace_root: str | None = None
    run_as: str | None = None
    limited_by: str = "none"  # none, cgroup, rlimit
    limits: tuple[str, ...] = ()
    unmet_limits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SharedLife:
    """Which shell of a shared terminal this is; kept with the shell for whoever adopts it.

    ``adoptions`` counts the workers that the earlier generations had.
    """

    generation: int = 1
    adoptions: int = 0


@dataclass(frozen=True, slots=True)
class OpenSpec:
    """Everything a worker needs to start one session, resolved by the registry.

    ``argv`` is None for the controlled shell of ``type`` ``shell``. ``env`` holds the
    caller's explicit variables. ``command`` is typed after start-up (byte surface). A limit
    of None is the node's own, one of 0 is none. ``shared`` makes it an owner's shared terminal.
    """

    session_id: SessionId
    owner_id: OwnerId
    epoch: int
    principal: Principal
    agent: AgentId
    type: str
    mode: SandboxMode
    name: str | None = None
    cwd: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    network: Network = Network.SHARED
    workspace_root: str | None = None
    argv: tuple[str, ...] | None = None
    rows: int = 40
    cols: int = 160
    term: str = "dumb"
    command: str | None = None
    run_as: str | None = None
    memory_max_bytes: int | None = None
    pids_max: int | None = None
    cpu_weight: int | None = None
    startup_timeout_s: float | None = None
    created_at: float = 0.0
    shared: SharedLife | None = None


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What ``list`` shows of one session. ``adoption`` counts the workers it has had."""

    session_id: SessionId
    owner_id: OwnerId
    type: str
    status: SessionStatus
    name: str | None = None
    pid: int | None = None
    host: HostName | None = None
    cwd: str | None = None
    confinement: Confinement = field(default_factory=lambda: Confinement(SandboxMode.READ_ONLY))
    rows: int = 40
    cols: int = 160
    created_at: float = 0.0
    last_activity_at: float = 0.0
    adoption: int = 1
    busy: bool = False


@dataclass(frozen=True, slots=True)
class OpenResult:
    """A published session and what it printed before it first wanted input."""

    info: SessionInfo
    motd: str
    wait_reason: WaitReason
    truncated: bool = False
    next_offset: int = 0


@dataclass(frozen=True, slots=True)
class SendRequest:
    """One send. ``data`` is written verbatim; ``submit`` adds one carriage return.

    ``timeout_s`` None means the setting. ``background`` settles on evidence only.
    """

    request_id: RequestId
    data: bytes
    submit: bool = True
    timeout_s: float | None = None
    background: bool = False


@dataclass(frozen=True, slots=True)
class SendResult:
    """What one send produced until it settled.

    ``viewport`` is its own output as text, head and tail around an explicit omission
    line when it was cut (``truncated``, ``omitted_bytes``). ``first_offset`` and
    ``next_offset`` bound its raw bytes in the byte log. ``exit_code`` is that of the
    shell's last command where a marker carried it. ``other_input`` says that somebody else
    (attached, or writing beside sends) typed while it ran.
    """

    viewport: str
    wait_reason: WaitReason
    status: SessionStatus
    evidence: Evidence = Evidence.NONE
    prompt_kind: PromptKind = PromptKind.NONE
    exit_code: int | None = None
    truncated: bool = False
    omitted_bytes: int = 0
    first_offset: int = 0
    next_offset: int = 0
    outcome: Outcome = Outcome.COMPLETED
    canonical: bool | None = None
    echo: bool | None = None
    cwd: str | None = None
    elapsed_s: float = 0.0
    other_input: bool = False


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page of scrollback, counted back from the newest line."""

    text: str
    total_lines: int
    line_begin: int
    line_end: int
    truncated: bool
    dropped_lines: int = 0
    dropped_bytes: int = 0


@dataclass(frozen=True, slots=True)
class TailPage:
    """New whole lines since a consumer's last tail."""

    text: str
    lines: int
    truncated: bool
    next_line: int = 0


@dataclass(frozen=True, slots=True)
class BytesPage:
    """Raw bytes from ``offset``; empty when the wait ran out. ``ended`` means no more follow."""

    offset: int
    data: bytes
    next_offset: int
    oldest_offset: int
    ended: bool = False


@dataclass(frozen=True, slots=True)
class ScreenSnapshot:
    """The rows x cols screen as a person sees it; cursor is zero-based."""

    rows: int
    cols: int
    lines: tuple[str, ...]
    cursor_row: int
    cursor_col: int
    cursor_visible: bool
    alternate: bool
    offset: int
    title: str = ""


@dataclass(frozen=True, slots=True)
class SignalDelivered:
    """The process group that got the signal."""

    target_pgid: int


@dataclass(frozen=True, slots=True)
class EndedProcess:
    """One process of a torn-down tree and the last signal it was sent (None: left by itself)."""

    pid: int
    name: str
    last_signal: str | None = None


@dataclass(frozen=True, slots=True)
class CloseReceipt:
    """What a teardown did. A non-empty ``survivors`` means it failed and may be retried."""

    root_exit: ExitStatus | None
    ended: tuple[EndedProcess, ...] = ()
    survivors: tuple[EndedProcess, ...] = ()
    elapsed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class CloseResult:
    """The answer to a close."""

    session_id: SessionId
    outcome: CloseOutcome
    receipt: CloseReceipt | None = None


@dataclass(frozen=True, slots=True)
class WaitCondition:
    """What ``wait_for`` waits for; the first that holds ends it, from ``since_offset`` on."""

    pattern: str | None = None
    quiet_s: float | None = None
    ready: bool = False
    exit: bool = False
    since_offset: int | None = None


@dataclass(frozen=True, slots=True)
class WaitResult:
    """Which condition held (``pattern quiet ready exit timeout``) and the text so far."""

    matched: str
    text: str
    status: SessionStatus
    match_text: str | None = None
    next_offset: int = 0
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One background send as its owner sees it."""

    task_id: TaskId
    owner_id: OwnerId
    session_id: SessionId
    label: str
    state: TaskState
    kind: str = "pty-send"
    detail: str | None = None
    started_at: float = 0.0
    finished_at: float | None = None


@dataclass(frozen=True, slots=True)
class TaskOutput:
    """New output of a task since ``cursor`` and its record."""

    text: str
    record: TaskRecord
    next_cursor: int
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class OwnerEvent:
    """One event of an owner's stream; ``sequence`` grows by one from 1. Holds no terminal text."""

    sequence: int
    kind: EventKind
    at: float
    session_id: SessionId | None = None
    task_id: TaskId | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events after a cursor, the sequence of the last event seen.

    ``dropped`` counts events that were never acknowledged and are not retained any more.
    ``ended`` gives the reason when no event follows.
    """

    events: tuple[OwnerEvent, ...]
    next_cursor: int
    dropped: int = 0
    ended: str | None = None


@dataclass(frozen=True, slots=True)
class NewsPage:
    """Owners whose events changed up to ``version``; ``missed`` says that any may have."""

    version: int
    owners: tuple[OwnerId, ...]
    missed: bool = False


@dataclass(frozen=True, slots=True)
class OwnerGrant:
    """A live owner: its id, the epoch of this acquisition, and when the lease ends."""

    owner_id: OwnerId
    epoch: int
    principal: Principal
    agent: AgentId
    mode: SandboxMode
    lease_s: float
    expires_at: float


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """What a caller asks for; the registry turns it into an ``OpenSpec``.

    ``os`` and ``host`` narrow the placement; None leaves it to the registry.
    """

    request_id: RequestId
    type: str
    name: str | None = None
    cwd: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    os: str | None = None
    host: HostName | None = None
    rows: int | None = None
    cols: int | None = None
    term: str | None = None
    command: str | None = None
    timeout_s: float | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class ReleaseReceipt:
    """What the disposal of an owner closed, and what it could not."""

    closed: tuple[SessionId, ...] = ()
    failed: tuple[SessionId, ...] = ()


@dataclass(frozen=True, slots=True)
class GatewayKeys:
    """What a gateway gets when it joins: keys for owner tokens and for other gateways."""

    token_keys: tuple[str, ...]
    peer_key: str


@dataclass(frozen=True, slots=True)
class Location:
    """Where a session is: enough for a gateway to reach it without asking again."""

    session_id: SessionId
    owner_id: OwnerId
    host: HostName
    socket: str
    key: str


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node as the registry knows it: what it is and what is left of it."""

    host: HostName
    alive: bool
    os: str = "linux"
    arch: str = ""
    sandbox_kinds: tuple[str, ...] = ()
    sessions: int = 0
    max_sessions: int = 0
    warm: int = 0
    ptys_free: int = 0
    memory_free_bytes: int = 0
    fds_free: int = 0
    draining: bool = False
    gateway: str | None = None
    node_dir: str = ""
    asked_at: float = 0.0
