"""Write the Seatbelt profile of a confined session on macOS.

The profile allows by default and takes away: every write, then back again what the mode
grants; reading and connecting to what is masked; the network where the policy says so. Later
rules win over earlier ones, so the masks come last. Paths are passed as parameters of the
profile (``-D``), never as part of its text, so a quote in a path cannot change a rule.

Terminals stay usable: a session writes its own through ``/dev/tty`` and the descriptor it
was given. Its own slave is opened by name only by programs that reopen it, so the pattern of
slave names is allowed; those of other sessions are kept apart by their owner and mode, which
is why a session should have a uid of its own (``run_as``) on macOS.

Pure: values in, argv out.
"""

from collections.abc import Iterable

from fabric.core.model import Network, SandboxMode
from workers.sandbox.policy import ResolvedPolicy, writable_roots

PROGRAM = "/usr/bin/sandbox-exec"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/ptmx", "/dev/dtracehelper")


def profile(*, writable: int, masked: int, read_only: bool, network: Network) -> str:
    """Write the profile for this many writable roots and masked paths."""
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
    ]
    devices = _DEVICES[:3] if read_only else _DEVICES
    names = " ".join(f'(literal "{name}")' for name in devices)
    lines.append(f"(allow file-write* {names})")
    lines.append('(allow file-write* file-ioctl (regex #"^/dev/ttys[0-9]+$"))')
    lines += [
        f'(allow file-write* (subpath (param "WRITABLE_{index}")))' for index in range(writable)
    ]
    if network is Network.NONE:
        lines.append("(deny network*)")
    for index in range(masked):
        lines.append(f'(deny file-read* file-write* (subpath (param "MASKED_{index}")))')
        lines.append(f'(deny network-outbound (subpath (param "MASKED_{index}")))')
    return "\n".join(lines) + "\n"


def wrap(
    policy: ResolvedPolicy,
    argv: tuple[str, ...],
    masked: Iterable[str],
    temporary: Iterable[str],
) -> tuple[str, ...]:
    """Wrap a command; ``temporary`` holds the canonical temporary folders of the user."""
    roots = writable_roots(policy, *temporary)
    masks = tuple(masked)
    text = profile(
        writable=len(roots),
        masked=len(masks),
        read_only=policy.mode is SandboxMode.READ_ONLY,
        network=policy.network,
    )
    parameters: list[str] = []
    for index, path in enumerate(roots):
        parameters += ["-D", f"WRITABLE_{index}={path}"]
    for index, path in enumerate(masks):
        parameters += ["-D", f"MASKED_{index}={path}"]
    return (PROGRAM, "-p", text, *parameters, "--", *argv)
