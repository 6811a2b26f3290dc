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
from fabric.core.settings_worker import InputSettings as InputSettings
from fabric.core.settings_worker import ReadinessSettings as ReadinessSettings
from fabric.core.settings_worker import SandboxSettings as SandboxSettings
from fabric.core.settings_worker import ScrollbackSettings as ScrollbackSettings
from fabric.core.settings_worker import SharedSettings as SharedSettings
from fabric.core.settings_worker import ShellSettings as ShellSettings
from fabric.core.settings_worker import TeardownSettings as TeardownSettings
from fabric.core.settings_worker import TranscriptSettings as TranscriptSettings
from fabric.core.settings_worker import WorkerSettings as WorkerSettings

MIN_RESULT_BYTES = 64
MAX_PORT = 65_535


class Secret(str):
    """A string whose representation hides it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


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
    refused without credentials and TLS unless ``insecure`` says so. ``tls_ca_file`` is whom to
    trust when other gateways are called (else ``tls_client_ca_file``, else the system's
    roots). ``abandon_grace_s`` is how long a send or open whose call broke off waits for its
    repeat. ``turns_per_owner`` is how many calls of one owner are served at once while others
    call too (0: as many as the machine has cores).
    """

    listen: str = "127.0.0.1:7443"
    advertise: str = ""
    token_file: str = ""
    signing_key_file: str = ""
    revoked_file: str = ""
    tls_cert_file: str = ""
    tls_key_file: str = ""
    tls_client_ca_file: str = ""
    tls_ca_file: str = ""
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
