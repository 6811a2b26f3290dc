"""The bounds a gateway holds its callers to and tells them about."""

from dataclasses import dataclass, field

from fabric.core.model import SandboxMode
from fabric.core.policy import OwnerPolicies
from fabric.core.policy import parse as parse_policies
from fabric.core.settings import PtySettings, Settings, TaskSettings, TranscriptSettings

SHELL_TYPE = "shell"
MODE_RANK = {
    SandboxMode.READ_ONLY: 0,
    SandboxMode.WORKSPACE_WRITE: 1,
    SandboxMode.DANGER_FULL_ACCESS: 2,
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds drawn from several sections of the settings; times in seconds."""

    max_message_bytes: int = 8_388_608
    max_send_bytes: int = 4_194_304
    max_result_bytes: int = 262_144
    max_shared_bytes: int = 262_144
    max_wait_s: float = 600.0
    send_timeout_s: float = 30.0
    wait_timeout_s: float = 30.0
    open_timeout_s: float = 60.0
    lease_s: float = 120.0
    request_retention_s: float = 600.0
    max_waits_per_owner: int = 256
    max_sessions_per_owner: int = 64
    max_tasks_per_owner: int = 10
    default_mode: SandboxMode = SandboxMode.READ_ONLY
    max_mode: SandboxMode = SandboxMode.DANGER_FULL_ACCESS
    types: tuple[str, ...] = (SHELL_TYPE,)
    tasks: TaskSettings = field(default_factory=TaskSettings)
    policies: OwnerPolicies = field(default_factory=OwnerPolicies)
    pty: PtySettings = field(default_factory=PtySettings)
    transcript: TranscriptSettings = field(default_factory=TranscriptSettings)


def limits_of(settings: Settings) -> Limits:
    """Draw the bounds from the settings of the whole fabric."""
    programs = (row.partition("=")[0].strip() for row in settings.worker.shell.programs)
    return Limits(
        max_message_bytes=settings.gateway.max_message_bytes,
        max_send_bytes=settings.worker.input.max_send_bytes,
        max_result_bytes=settings.gateway.max_result_bytes,
        max_shared_bytes=settings.worker.shared.max_tool_output_bytes,
        max_wait_s=settings.tasks.max_wait_timeout_s,
        send_timeout_s=settings.worker.readiness.timeout_s,
        wait_timeout_s=settings.tasks.wait_timeout_s,
        open_timeout_s=settings.registry.open_timeout_s,
        lease_s=settings.registry.lease_s,
        request_retention_s=min(
            settings.registry.request_retention_s, settings.worker.input.request_retention_s
        ),
        max_waits_per_owner=settings.gateway.max_waits_per_owner,
        max_sessions_per_owner=settings.registry.max_sessions_per_owner,
        max_tasks_per_owner=settings.tasks.max_active_per_owner,
        default_mode=settings.registry.default_mode,
        max_mode=settings.registry.max_mode,
        types=(SHELL_TYPE, *programs),
        tasks=settings.tasks,
        policies=parse_policies(settings.registry.policies),
        pty=settings.pty,
        transcript=settings.worker.transcript,
    )
