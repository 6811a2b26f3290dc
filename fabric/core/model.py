"""The values that travel between the rooms.

Plain frozen dataclasses: sizes in bytes, times in seconds as float, wall times in
seconds since 1970. Everything here can be turned into plain data and back with
``fabric.core.plain``, so it may hold only strings, bytes, numbers, booleans, None,
enums, other such dataclasses, and tuples of these. Sessions, sends and tasks are here;
the closed sets of words are in ``words``, owners and nodes in ``standing``, pages and
screens in ``pages``. Everybody imports them from here.
"""

from dataclasses import dataclass, field

from fabric.core.ids import (
    AgentId,
    HostName,
    OwnerId,
    Principal,
    RequestId,
    SessionId,
    TaskId,
)
from fabric.core.pages import (
    BytesPage,
    ReadPage,
    ScreenSnapshot,
    SignalDelivered,
    TailPage,
    WaitCondition,
)
from fabric.core.standing import (
    EventPage,
    GatewayKeys,
    Location,
    NewsPage,
    NodeState,
    OwnerEvent,
    OwnerGrant,
    ReleaseReceipt,
)
from fabric.core.words import (
    CloseOutcome,
    EventKind,
    Evidence,
    Network,
    Outcome,
    PromptKind,
    SandboxMode,
    SignalName,
    TaskState,
    WaitReason,
)

# fmt: off
__all__ = [
    "BytesPage", "Caller", "CloseOutcome", "CloseReceipt",
    "CloseResult", "Confinement", "EndedProcess", "EventKind",
    "EventPage", "Evidence", "ExitStatus", "GatewayKeys",
    "Location", "Network", "NewsPage", "NodeState",
    "OpenRequest", "OpenResult", "OpenSpec", "Outcome",
    "OwnerEvent", "OwnerGrant", "PromptKind", "ReadPage",
    "ReleaseReceipt", "SandboxMode", "ScreenSnapshot", "SendRequest",
    "SendResult", "SessionInfo", "SessionStatus", "SharedLife",
    "SignalDelivered", "SignalName", "TailPage", "TaskOutput",
    "TaskRecord", "TaskState", "WaitCondition", "WaitReason",
    "WaitResult",
]
# fmt: on


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
