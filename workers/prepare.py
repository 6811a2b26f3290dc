"""Decide everything about the start of one session before the shim is asked for it.

One place puts the rooms' decisions together: what the owner's policy confines it to, where it
works, what it inherits, what it must not see, and how much it may take. What is asked of the
file system here is asked once; the shim's child carries it out and compares.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fabric.core.errors import SpawnFailedError
from fabric.core.model import OpenSpec
from fabric.core.settings import SandboxSettings
from workers.sandbox import confine, environment, masks, policy, workspace
from workers.sandbox.account import account_of, has_locale
from workers.sandbox.confine import Launch
from workers.sandbox.limits import (
    Cgroups,
    InForce,
    Limits,
    SessionCgroup,
    base_limits,
    resource_limits,
)
from workers.sandbox.probe import NodeConfinement
from workers.slot import SlotConfig
from workers.terminal.dialects import Dialect


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the shim is asked to start, and the cgroup that was made for it."""

    launch: Launch
    cwd: str
    run_as: str | None
    rlimits: tuple[tuple[str, int], ...]
    cgroup: SessionCgroup | None


def prepare(
    spec: OpenSpec,
    dialect: Dialect,
    settings: SandboxSettings,
    node: NodeConfinement,
    slot: SlotConfig,
    environ: Mapping[str, str] = os.environ,
) -> Prepared:
    """Prepare the start of a session. Whoever gives it up removes the cgroup.

    Raises: SandboxUnavailableError, InvalidRequestError, SpawnFailedError.
    """
    account = account_of(spec.run_as)
    root, is_own = spec.workspace_root, False
    if root is None:
        root, is_own = workspace.default_root(spec, settings, account, environ)
    if is_own:
        workspace.make(root, account)
    resolved = policy.resolve(spec, allowed_roots=settings.allowed_roots, node_cwd_default=root)
    env = environment.build(
        environ,
        session_vars={**dialect.env, "FABRIC_SESSION_ID": spec.session_id},
        explicit=spec.env,
        allow=settings.env_allow,
        account=account,
        has_locale=has_locale,
    )
    limits = Limits.of(settings, spec)
    cgroup, in_force = _cgroup(limits, node, slot)
    rlimits: tuple[tuple[str, int], ...] = tuple(base_limits())
    if cgroup is None:
        rlimits, in_force = resource_limits(limits, own_uid=account.switched)
    try:
        launch = confine.plan(
            resolved,
            dialect.argv,
            env,
            node,
            masked_paths=masked(settings, slot, environ),
            cgroup_procs=cgroup.procs if cgroup else None,
        )
    except BaseException:
        if cgroup is not None:
            cgroup.remove()
        raise
    seen = replace(
        launch.confinement,
        run_as=spec.run_as,
        limited_by=in_force.by,
        limits=in_force.names,
        unmet_limits=in_force.unmet,
    )
    return Prepared(
        launch=replace(launch, confinement=seen),
        cwd=resolved.cwd,
        run_as=spec.run_as,
        rlimits=rlimits,
        cgroup=cgroup,
    )


def masked(
    settings: SandboxSettings, slot: SlotConfig, environ: Mapping[str, str]
) -> tuple[str, ...]:
    """List what no confined session of this node may see, its own sockets included."""
    home = environ.get("HOME") or account_of(None).home
    return (*settings.masked_paths, *masks.of_service(environ, home), slot.node_dir)


def cgroups_of(node: NodeConfinement | None) -> Cgroups | None:
    """Return what the node may divide among its sessions."""
    if node is None or node.cgroup is None:
        return None
    return Cgroups(Path(node.cgroup), frozenset(node.controllers))


def _cgroup(
    limits: Limits, node: NodeConfinement, slot: SlotConfig
) -> tuple[SessionCgroup | None, InForce]:
    cgroups = cgroups_of(node)
    if cgroups is None or not limits.wanted:
        return None, InForce("none")
    try:
        return cgroups.create(slot.slot_id, limits)
    except OSError as error:
        raise SpawnFailedError(
            f"the limits of the session cannot be set: {error.strerror}", folder=node.cgroup
        ) from error
