"""What of the settings is different for a shared terminal."""

from dataclasses import replace

from fabric.core.model import OpenSpec
from fabric.core.settings import WorkerSettings


def settings_for(spec: OpenSpec, settings: WorkerSettings) -> WorkerSettings:
    """Return the settings of a session, with those of the shared terminal if it is one."""
    if spec.shared is None:
        return settings
    shared = settings.shared
    most = shared.scrollback_max_bytes
    return replace(
        settings,
        scrollback=replace(
            settings.scrollback,
            lines=shared.scrollback_lines + shared.rows,
            max_bytes=most,
            read_max_bytes=min(settings.scrollback.read_max_bytes, most),
            send_max_bytes=min(shared.max_tool_output_bytes, most),
        ),
        readiness=replace(
            settings.readiness,
            poll_interval_s=min(shared.poll_interval_s, settings.readiness.idle_silence_s),
            startup_timeout_s=shared.operation_timeout_s,
        ),
        teardown=replace(settings.teardown, grace_s=shared.dispose_grace_s),
        shell=replace(settings.shell, path=shared.shell_path, read_startup_files=False),
    )
