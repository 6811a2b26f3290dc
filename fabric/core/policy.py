"""What an operator lays down for one principal: rows of text, checked and looked up.

A row reads ``<principal> <name>=<value> ...``; the row of ``*`` holds for whoever has none of
its own. Rows do not add up: a principal's own row replaces that of ``*`` as a whole, so that
what holds for somebody is read in one place.

    names           values
    run_as          account (name or uid) of the principal's shells
    network         shared, none
    workspace_root  folder on the node, absolute
    memory_max_bytes, pids_max, cpu_weight
                    for each session; 0 lifts the node's own limit
    max_mode        the most its sessions may do
    max_sessions, max_opens, max_tasks, max_waits
                    sessions, opens in flight, active tasks and waiting calls (at one
                    gateway) of all its owners together, beside the limits of each owner
    max_send_bytes  what one send may type

Whatever a row does not name is the deployment's default: the registry's ``network``, the
node's workspace and limits, the service's own account.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fabric.core.model import Network, SandboxMode

EVERYBODY = "*"
_LIMITS = ("memory_max_bytes", "pids_max", "cpu_weight")
_QUOTAS = ("max_sessions", "max_opens", "max_tasks", "max_waits", "max_send_bytes")


@dataclass(frozen=True, slots=True)
class OwnerPolicy:
    """What holds for one principal's sessions beside their mode; None is the default's."""

    run_as: str | None = None
    network: Network | None = None
    workspace_root: str | None = None
    memory_max_bytes: int | None = None
    pids_max: int | None = None
    cpu_weight: int | None = None
    max_mode: SandboxMode | None = None
    max_sessions: int | None = None
    max_opens: int | None = None
    max_tasks: int | None = None
    max_waits: int | None = None
    max_send_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class OwnerPolicies:
    """The policies of a deployment."""

    rows: Mapping[str, OwnerPolicy] = field(default_factory=dict)

    def of(self, principal: str) -> OwnerPolicy:
        """Return what holds for a principal."""
        own = self.rows.get(principal)
        return own if own is not None else self.rows.get(EVERYBODY, OwnerPolicy())


def parse(rows: Iterable[str]) -> OwnerPolicies:
    """Read rows. Raises: ValueError that names the row and what is wrong with it."""
    found: dict[str, OwnerPolicy] = {}
    for row in rows:
        principal, *words = row.split() or [""]
        if not principal or "=" in principal:
            raise ValueError(f"{row!r} must begin with a principal or {EVERYBODY}")
        if principal in found:
            raise ValueError(f"{principal!r} has two rows")
        policy = OwnerPolicy()
        for word in words:
            name, _, value = word.partition("=")
            policy = replace(policy, **{name: _value(row, name, value)})
        found[principal] = policy
    return OwnerPolicies(found)


def _value(row: str, name: str, value: str) -> Any:
    if name in _LIMITS:
        if not value.isdigit():
            raise ValueError(f"{name} in {row!r} must be a whole number")
        return int(value)
    if name in _QUOTAS:
        if not value.isdigit() or not int(value):
            raise ValueError(f"{name} in {row!r} must be a whole number above 0")
        return int(value)
    if name == "max_mode":
        if value not in {item.value for item in SandboxMode}:
            raise ValueError(f"max_mode in {row!r} must be one of {', '.join(SandboxMode)}")
        return SandboxMode(value)
    if name == "network":
        if value not in {item.value for item in Network}:
            raise ValueError(f"network in {row!r} must be shared or none")
        return Network(value)
    if name == "workspace_root" and not value.startswith("/"):
        raise ValueError(f"workspace_root in {row!r} must be an absolute path")
    if name not in ("run_as", "workspace_root"):
        raise ValueError(f"{row!r} names {name!r}, which no policy has")
    if not value:
        raise ValueError(f"{name} in {row!r} has no value")
    return value
