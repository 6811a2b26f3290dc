"""The settings of a session worker and of its sessions."""

from dataclasses import dataclass, field

from fabric.core.checking import positive


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
