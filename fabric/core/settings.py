"""Settings: frozen sections with defaults, checked all at once.

Each room receives its own section, never the whole and never a global. Sources, later
wins: the defaults here, a TOML file, the environment (``FABRIC_<SECTION>__<FIELD>``),
flags; ``fabric.core.sources`` reads them. Seconds end in ``_s``, sizes in ``_bytes``.
"""

from dataclasses import dataclass, field

from fabric.core.checking import Faults, positive
from fabric.core.errors import SettingsError as SettingsError  # its home for those who set
from fabric.core.model import Network, SandboxMode
from fabric.core.policy import parse as parse_policies
from fabric.core.settings_observe import MetricsSettings as MetricsSettings
from fabric.core.settings_observe import TraceSettings as TraceSettings
from fabric.core.settings_web import WebSettings

MIN_RESULT_BYTES = 64
MAX_PORT = 65_535


class Secret(str):
    """A string whose representation hides it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


@dataclass(frozen=True, slots=True)
class ReadinessSettings:
    """How a session learns that a program wants input."""

    first_probe_s: float = 0.0005
    poll_interval_s: float = 0.05
    idle_silence_s: float = 3.0
    background_silence_s: float = 30.0
    handoff_grace_s: float = 0.5
    timeout_s: float = 30.0
    startup_timeout_s: float = 30.0
    exact: bool = True

    def __post_init__(self) -> None:
        """Check ranges and relations. Raises: SettingsError."""
        faults = positive("worker.readiness", self)
        faults.check(
            self.first_probe_s <= self.poll_interval_s <= self.idle_silence_s <= self.timeout_s,
            "idle_silence_s",
            self.idle_silence_s,
            "first_probe_s <= poll_interval_s <= idle_silence_s <= timeout_s",
        )
        faults.check(
            self.handoff_grace_s >= self.poll_interval_s,
            "handoff_grace_s",
            self.handoff_grace_s,
            "must not be below poll_interval_s",
        )
        faults.raise_if_any()


@dataclass(frozen=True, slots=True)
class ScrollbackSettings:
    """How much output is kept and returned."""

    lines: int = 10_000
    max_bytes: int = 4_194_304
    read_max_bytes: int = 262_144
    send_max_bytes: int = 262_144
    bytelog_bytes: int = 8_388_608
    carry_bytes: int = 65_536

    def __post_init__(self) -> None:
        """Check ranges and relations. Raises: SettingsError."""
        faults = positive("worker.scrollback", self)
        for name in ("read_max_bytes", "send_max_bytes"):
            value = getattr(self, name)
            faults.check(value <= self.max_bytes, name, value, "must not exceed max_bytes")
        faults.raise_if_any()


@dataclass(frozen=True, slots=True)
class InputSettings:
    """What a caller may write."""

    max_send_bytes: int = 4_194_304
    write_stall_s: float = 10.0
    request_retention_s: float = 600.0
    max_request_ids: int = 1024

    def __post_init__(self) -> None:
        """Check ranges. Raises: SettingsError."""
        positive("worker.input", self).raise_if_any()


@dataclass(frozen=True, slots=True)
class TeardownSettings:
    """How a process tree is ended."""

    grace_s: float = 3.0
    shell_grace_s: float = 1.0
    orphan_grace_s: float = 120.0

    def __post_init__(self) -> None:
        """Check ranges. Raises: SettingsError."""
        positive("worker.teardown", self).raise_if_any()


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """The node's sandbox: probing, workspace, allowed roots, masked paths, limits per session.

    A limit of 0 means none. ``allowed_roots`` empty means every directory.
    ``workspace_root`` is where sessions work whose owner's policy names no folder; in it
    ``{principal}`` and ``{agent}`` stand for the owner. Empty means a folder of the owner's
    own in workspace-write, and the account's home where nothing may be written anyway.
    """

    probe_timeout_s: float = 5.0
    workspace_root: str = ""
    allowed_roots: tuple[str, ...] = ()
    masked_paths: tuple[str, ...] = ()
    memory_max_bytes: int = 0
    pids_max: int = 0
    cpu_weight: int = 0
    env_allow: tuple[str, ...] = (
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR",
        "XDG_*", "EDITOR", "VISUAL", "HOSTNAME", "JAVA_HOME", "GOPATH", "GOROOT", "CARGO_HOME",
        "RUSTUP_HOME", "NVM_DIR", "PYENV_ROOT", "VIRTUAL_ENV", "CONDA_*", "CC", "CXX", "CFLAGS",
        "CXXFLAGS", "LDFLAGS", "PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "MANPATH", "INFOPATH",
        "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "DEVELOPER_DIR", "SDKROOT",
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Check ranges. Raises: SettingsError."""
        faults = positive("worker.sandbox", self, "memory_max_bytes", "pids_max", "cpu_weight")
        for name in ("memory_max_bytes", "pids_max", "cpu_weight"):
            value = getattr(self, name)
            faults.check(value >= 0, name, value, "must be 0 (no limit) or greater")
        root = self.workspace_root
        faults.check(
            not root or root.startswith("/"), "workspace_root", root, "must be an absolute path"
        )
        faults.raise_if_any()


@dataclass(frozen=True, slots=True)
class ShellSettings:
    """The controlled shell and the other program types a caller may open.

    ``programs`` maps a type to its argv, as ``name=program arg arg`` strings.
    """

    path: str = "/bin/bash"
    prompt: str = "$ "
    rows: int = 40
    cols: int = 160
    read_startup_files: bool = False
    programs: tuple[str, ...] = ("python=python3 -q", "sh=/bin/sh", "gdb=gdb -q", "node=node")

    def __post_init__(self) -> None:
        """Check ranges and forms. Raises: SettingsError."""
        faults = positive("worker.shell", self)
        faults.check(bool(self.path), "path", self.path, "must be a non-empty path")
        faults.check(bool(self.prompt.strip()), "prompt", self.prompt, "must not be blank")
        for row in self.programs:
            name, _, argv = row.partition("=")
            faults.check(
                bool(name.strip() and argv.strip()) and name != "shell",
                "programs",
                row,
                "must read name=program arg ..., and the name shell is taken",
            )
        faults.raise_if_any()


@dataclass(frozen=True, slots=True)
class TranscriptSettings:
    """A record of calls and of terminal output, below ``dir``; off while that is empty.

    ``max_total_bytes`` bounds all of a node's files together, ``retention_s`` their age.
    """

    dir: str = ""
    retention_s: float = 604_800.0
    max_file_bytes: int = 16_777_216
    max_total_bytes: int = 1_073_741_824

    def __post_init__(self) -> None:
        """Check ranges. Raises: SettingsError."""
        faults = positive("worker.transcript", self)
        faults.check(
            not self.dir or self.dir.startswith(("/", "~")), "dir", self.dir, "must be absolute"
        )
        faults.check(
            self.max_file_bytes <= self.max_total_bytes,
            "max_file_bytes",
            self.max_file_bytes,
            "must not exceed max_total_bytes",
        )
        faults.raise_if_any()


@dataclass(frozen=True, slots=True)
class SharedSettings:
    """The shared terminal of an owner; all of it is fixed when the fabric starts.

    ``shell_args`` are the shell's arguments at every spawn; ``scrollback_*`` exclude the
    viewport; ``max_sessions`` counts the live shared terminals of the whole fabric.
    """

    shell_path: str = "/bin/bash"
    shell_args: tuple[str, ...] = ("--noprofile", "--norc", "-i")
    rows: int = 40
    cols: int = 160
    scrollback_lines: int = 10_000
    scrollback_max_bytes: int = 4_194_304
    max_tool_output_bytes: int = 262_144
    max_input_bytes: int = 65_536
    max_queued_operations: int = 128
    max_sessions: int = 32
    poll_interval_s: float = 0.05
    operation_timeout_s: float = 30.0
    interrupt_timeout_s: float = 5.0
    disconnect_grace_s: float = 15.0
    dispose_grace_s: float = 3.0

    def __post_init__(self) -> None:
        """Check ranges, forms and relations. Raises: SettingsError."""
        faults = positive("worker.shared", self)
        faults.check(
            self.shell_path.endswith("bash"), "shell_path", self.shell_path, "must name bash"
        )
        for argument in self.shell_args:
            faults.check(
                bool(argument), "shell_args", self.shell_args, "must not hold an empty one"
            )
        for name, most in (("rows", 1000), ("cols", 1000)):
            value = getattr(self, name)
            faults.check(value <= most, name, value, f"must be at most {most}")
        faults.check(
            1024 <= self.max_tool_output_bytes <= self.scrollback_max_bytes,
            "max_tool_output_bytes",
            self.max_tool_output_bytes,
            "must lie between 1024 and scrollback_max_bytes",
        )
        faults.raise_if_any()


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What one session needs to know."""

    readiness: ReadinessSettings = field(default_factory=ReadinessSettings)
    scrollback: ScrollbackSettings = field(default_factory=ScrollbackSettings)
    input: InputSettings = field(default_factory=InputSettings)
    teardown: TeardownSettings = field(default_factory=TeardownSettings)
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    shell: ShellSettings = field(default_factory=ShellSettings)
    transcript: TranscriptSettings = field(default_factory=TranscriptSettings)
    shared: SharedSettings = field(default_factory=SharedSettings)


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """What one node offers."""

    max_sessions: int = 64
    warm_sessions: int = 4
    max_starting: int = 2
    start_timeout_s: float = 60.0
    min_free_memory_bytes: int = 268_435_456
    min_free_fds: int = 256
    min_free_ptys: int = 8
    sweep_interval_s: float = 5.0

    def __post_init__(self) -> None:
        """Check ranges. Raises: SettingsError."""
        faults = positive("node", self, "warm_sessions")
        faults.check(self.warm_sessions >= 0, "warm_sessions", self.warm_sessions, "must be >= 0")
        faults.raise_if_any()


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """Owners and their limits.

    ``policies`` holds a row for each principal that has a policy of its own, as
    ``principal run_as=account network=none workspace_root=/folder memory_max_bytes=...
    pids_max=... cpu_weight=...``; the row of ``*`` is for all others. ``word_s`` is how long
    a node on another machine serves its sessions without word from the registry; only after
    that, ``lost_timeout_s``, are the sessions of a silent node given up.
    """

    default_mode: SandboxMode = SandboxMode.READ_ONLY
    max_mode: SandboxMode = SandboxMode.DANGER_FULL_ACCESS
    network: Network = Network.SHARED
    policies: tuple[str, ...] = ()
    lease_s: float = 120.0
    min_lease_s: float = 5.0
    max_lease_s: float = 86_400.0
    max_sessions_per_owner: int = 64
    max_pending_opens_per_owner: int = 64
    open_timeout_s: float = 60.0
    close_timeout_s: float = 60.0
    request_retention_s: float = 600.0
    max_request_ids: int = 4096
    max_owners_per_principal: int = 1024
    sweep_interval_s: float = 1.0
    node_poll_interval_s: float = 2.0
    node_call_timeout_s: float = 5.0
    word_s: float = 30.0
    lost_timeout_s: float = 45.0
    tombstone_retention_s: float = 3600.0
    max_tombstones: int = 10_000

    def __post_init__(self) -> None:
        """Check ranges and relations. Raises: SettingsError."""
        faults = positive("registry", self)
        faults.check(
            self.min_lease_s <= self.lease_s <= self.max_lease_s,
            "lease_s",
            self.lease_s,
            "min_lease_s <= lease_s <= max_lease_s",
        )
        faults.check(
            self.word_s < self.lost_timeout_s,
            "word_s",
            self.word_s,
            "must be below lost_timeout_s: who gave a session up must know that it rests",
        )
        faults.check(
            self.node_poll_interval_s + self.node_call_timeout_s < self.word_s,
            "word_s",
            self.word_s,
            "must be above node_poll_interval_s + node_call_timeout_s",
        )
        try:
            parse_policies(self.policies)
        except ValueError as error:
            faults.check(False, "policies", str(error), "see fabric.core.policy")
        faults.raise_if_any()


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """Background sends and waiting."""

    enabled: bool = True
    max_active_per_owner: int = 10
    max_output_bytes: int = 262_144
    wait_timeout_s: float = 30.0
    max_wait_timeout_s: float = 600.0
    retention_s: float = 3600.0
    max_retained_per_owner: int = 100
    max_retained_bytes_per_owner: int = 8_388_608
    max_events_per_owner: int = 1000

    def __post_init__(self) -> None:
        """Check ranges and relations. Raises: SettingsError."""
        faults = positive("tasks", self)
        faults.check(
            self.wait_timeout_s <= self.max_wait_timeout_s,
            "wait_timeout_s",
            self.wait_timeout_s,
            "must not exceed max_wait_timeout_s",
        )
        faults.raise_if_any()


@dataclass(frozen=True, slots=True)
class PtySettings:
    """The byte surface: the program type a command runs in, and how much a tail returns."""

    backend_type: str = "shell"
    tail_lines: int = 200

    def __post_init__(self) -> None:
        """Check ranges. Raises: SettingsError."""
        faults = positive("pty", self)
        faults.check(bool(self.backend_type), "backend_type", self.backend_type, "must be named")
        faults.raise_if_any()


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """The gRPC server of a node.

    ``token_file`` holds bearer tokens, ``signing_key_file`` the keys of signed ones and
    ``revoked_file`` the ids of those that count no more; a listener beyond loopback is
    refused without credentials and TLS unless ``insecure`` says so. ``abandon_grace_s`` is
    how long a send or open whose call broke off waits for its repeat. ``turns_per_owner``
    is how many calls of one owner are served at once while others call too (0: as many as
    the machine has cores).
    """

    listen: str = "127.0.0.1:7443"
    advertise: str = ""
    token_file: str = ""
    signing_key_file: str = ""
    revoked_file: str = ""
    tls_cert_file: str = ""
    tls_key_file: str = ""
    tls_client_ca_file: str = ""
    insecure: bool = False
    reflection: bool = True
    max_result_bytes: int = 262_144
    max_message_bytes: int = 8_388_608
    deadline_margin_s: float = 0.25
    default_deadline_s: float = 120.0
    drain_s: float = 10.0
    abandon_grace_s: float = 1.0
    max_waits_per_owner: int = 256
    turns_per_owner: int = 0
    max_line_per_owner: int = 1024

    def __post_init__(self) -> None:
        """Check ranges. Raises: SettingsError."""
        faults = positive("gateway", self, "turns_per_owner")
        turns = self.turns_per_owner
        faults.check(turns >= 0, "turns_per_owner", turns, "must be 0 (cores) or greater")
        faults.check(
            self.max_result_bytes >= MIN_RESULT_BYTES,
            "max_result_bytes",
            self.max_result_bytes,
            f"must be at least {MIN_RESULT_BYTES}",
        )
        host, _, port = self.listen.rpartition(":")
        # A larger port would be taken modulo 65536 below us, and another one listened on.
        faults.check(
            bool(host) and port.isdecimal() and int(port) <= MAX_PORT,
            "listen",
            self.listen,
            f"must read address:port, with a port of at most {MAX_PORT}",
        )
        faults.check(
            bool(self.tls_cert_file) == bool(self.tls_key_file),
            "tls_key_file",
            self.tls_key_file,
            "tls_cert_file and tls_key_file go together",
        )
        faults.raise_if_any()


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The Ray cluster below: where it is, or how one is made.

    With ``node_ip``, an address of this machine that the others reach, ``fabric up`` starts
    a Ray node here: the head of a cluster of several machines (at ``port``, 0: any), or,
    with ``address``, one that joins it. ``redis_address`` (host:port) is where a head keeps
    what it knows, so that the cluster outlives the head; empty: in memory only.
    """

    address: str = ""
    node_ip: str = ""
    port: int = 0
    redis_address: str = ""
    namespace: str = "pty-fabric"
    host: str = ""
    state_dir: str = ""
    object_store_bytes: int = 104_857_600
    start_timeout_s: float = 120.0
    call_timeout_s: float = 5.0

    def __post_init__(self) -> None:
        """Check ranges. Raises: SettingsError."""
        faults = positive("cluster", self, "port")
        faults.check(0 <= self.port < 65_536, "port", self.port, "must be 0 to 65535")
        name, _, port = self.redis_address.rpartition(":")
        faults.check(
            not self.redis_address or bool(name and port.isdigit()),
            "redis_address",
            self.redis_address,
            "must read host:port",
        )
        faults.check(
            not self.redis_address or self.port > 0,
            "port",
            self.port,
            "must be fixed with redis_address: the other nodes look for the new head where it was",
        )
        faults.raise_if_any()


@dataclass(frozen=True, slots=True)
class LogSettings:
    """How much is logged."""

    level: str = "INFO"

    def __post_init__(self) -> None:
        """Check the level. Raises: SettingsError."""
        faults = Faults("log")
        levels = ("DEBUG", "INFO", "WARNING", "ERROR")
        faults.check(self.level in levels, "level", self.level, f"must be one of {levels}")
        faults.raise_if_any()


@dataclass(frozen=True, slots=True)
class Settings:
    """Every section."""

    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    web: WebSettings = field(default_factory=WebSettings)
    registry: RegistrySettings = field(default_factory=RegistrySettings)
    tasks: TaskSettings = field(default_factory=TaskSettings)
    pty: PtySettings = field(default_factory=PtySettings)
    node: NodeSettings = field(default_factory=NodeSettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    log: LogSettings = field(default_factory=LogSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    trace: TraceSettings = field(default_factory=TraceSettings)
