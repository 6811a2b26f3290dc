"""Plan the start of a session: the command, its environment, and the steps before exec.

``plan`` decides, ``workers.shim.confine`` carries out. A policy that this node cannot meet is
refused, never widened; what is met only in part is reported in ``Confinement.partial``.
"""

import base64
import dataclasses
import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fabric.core.errors import (
    InvalidRequestError,
    SandboxUnavailableError,
    SpawnFailedError,
)
from fabric.core.model import Confinement, Network, SandboxMode
from workers.sandbox import bubblewrap, landlock, masks, seatbelt, seccomp
from workers.sandbox.account import Account, account_of
from workers.sandbox.policy import TEMPORARY, ResolvedPolicy, folder_at, is_below
from workers.sandbox.probe import NodeConfinement
from workers.shim import confine as applier

BUBBLEWRAP, LANDLOCK, SEATBELT, NONE = "bubblewrap", "landlock", "seatbelt", "none"


@dataclass(frozen=True, slots=True)
class Launch:
    """What the shim starts. ``landlock`` is the plan for ``workers.shim.confine``, if any."""

    argv: tuple[str, ...]
    env: dict[str, str]
    landlock: bytes | None
    confinement: Confinement


def plan(
    policy: ResolvedPolicy,
    argv: tuple[str, ...],
    env: Mapping[str, str],
    confinement: NodeConfinement,
    masked_paths: Iterable[str],
    *,
    cgroup_procs: str | None = None,
) -> Launch:
    """Plan the start of one session; ``cgroup_procs`` is the file by which it joins its cgroup.

    Asks the file system (which masks exist, which sockets listen), so call it at the open.

    Raises: SandboxUnavailableError when the node cannot meet the policy, InvalidRequestError
    for an empty command or a workspace inside a masked path, SpawnFailedError when the
    account is unknown or the working folder would not be visible.
    """
    if not argv or not argv[0]:
        raise InvalidRequestError("the command must not be empty", field="argv")
    start = _Start(policy, argv, dict(env), confinement, account_of(policy.run_as), cgroup_procs)
    if not policy.is_confined:
        if policy.network is Network.NONE:
            raise start.refusal("network none needs a confined mode")
        return start.launch(argv, NONE)
    masked = tuple(masked_paths)
    secret = masks.existing(masked, start.account)
    start.check_folders(secret)
    if confinement.system == "darwin":
        return start.by_seatbelt(secret)
    if start.binary and start.bubblewrap_meets_network:
        return start.by_bubblewrap(secret)
    if confinement.landlock_abi and (policy.network is Network.SHARED or confinement.filtered):
        return start.by_landlock(secret)
    raise start.refusal(confinement.failure)


@dataclass(slots=True)
class _Start:
    policy: ResolvedPolicy
    argv: tuple[str, ...]
    env: dict[str, str]
    node: NodeConfinement
    account: Account
    cgroup_procs: str | None

    @property
    def binary(self) -> str | None:
        return self.node.bubblewrap_switched if self.account.switched else self.node.bubblewrap

    @property
    def bubblewrap_meets_network(self) -> bool:
        return self.policy.network is Network.SHARED or self.node.bubblewrap_network

    def refusal(self, why: str) -> SandboxUnavailableError:
        mode, node = self.policy.mode.value, self.node.host or "this node"
        return SandboxUnavailableError(
            f"sandbox mode {mode} with network {self.policy.network.value} cannot be met on {node}"
            f"{': ' + why if why else ''}. Nothing was started. Let the node use bubblewrap (user "
            "namespaces) or Landlock, open on another node, or have the operator choose "
            f"{SandboxMode.DANGER_FULL_ACCESS.value} for this owner",
            mode=mode, network=self.policy.network.value, node=node,
        )  # fmt: skip

    def check_folders(self, secret: tuple[masks.Mask, ...]) -> None:
        for path, _ in secret:
            if is_below(self.policy.workspace_root, path):
                raise InvalidRequestError(
                    f"workspace root {self.policy.workspace_root} lies in a folder of the service",
                    workspace_root=self.policy.workspace_root,
                )
            if is_below(os.path.realpath(self.policy.cwd), path):
                raise SpawnFailedError(
                    f"working folder {self.policy.cwd} lies in a folder of the service",
                    cwd=self.policy.cwd,
                )

    def by_bubblewrap(self, secret: tuple[masks.Mask, ...]) -> Launch:
        policy = self.policy
        real = os.path.realpath(policy.cwd)
        if not bubblewrap.is_visible(real, policy):
            raise SpawnFailedError(
                f"working folder {policy.cwd} is not visible in mode {policy.mode.value}: "
                f"{TEMPORARY} is private there and /run is hidden",
                cwd=policy.cwd,
            )
        as_root = self.account.uid == 0
        own = policy.workspace_root if policy.mode is SandboxMode.WORKSPACE_WRITE else None
        covered = [*masks.of(secret), *((own,) if own else ())]
        sockets = [
            path
            for path in masks.listening_sockets()
            if bubblewrap.is_visible(path, policy)
            and not any(is_below(path, folder) for folder in covered)
        ]
        prefix = bubblewrap.arguments(
            self.binary or "",
            dataclasses.replace(policy, cwd=real),
            secret,
            as_root=as_root,
            run_kept=bubblewrap.kept_of_run(),
        )
        if policy.mode is SandboxMode.WORKSPACE_WRITE:
            self._keep_temporary(policy.workspace_root, TEMPORARY)
        workspace = policy.workspace
        steps: dict[str, Any] = {
            "devices": _nodes() if as_root else [],
            "sockets": sockets,
            "open": [
                [workspace.path, workspace.device, workspace.inode, bubblewrap.WORKSPACE_FD]
            ] if bubblewrap.binds_workspace(policy) else [],
            "landlock": landlock.scope_only(self.node.landlock_abi),
            "seccomp": self._filter(seccomp.common_rules(), companion=True),
        }  # fmt: skip
        return self.launch((*prefix, *self.argv), BUBBLEWRAP, steps)

    def by_landlock(self, secret: tuple[masks.Mask, ...]) -> Launch:
        policy, node = self.policy, self.node
        masked = masks.of(secret)
        writes = policy.mode is SandboxMode.WORKSPACE_WRITE
        temporary = folder_at(TEMPORARY) if landlock.may_write_temporary(masked) else None
        if writes:
            self._keep_temporary(policy.workspace_root, *((temporary.path,) if temporary else ()))
        rules = seccomp.common_rules() + seccomp.landlock_rules(
            read_only=not writes, network=policy.network is Network.SHARED
        )
        # Landlock does not know modes; without a read-only session's filter, a root that can
        # would still change those of the machine's own nodes.
        owns_nodes = self.account.uid == 0 and node.can_mount
        steps: dict[str, Any] = {
            "devices": [*_nodes(), "/proc"] if owns_nodes else [],
            "drop_caps": True,
            "landlock": landlock.ruleset(policy, node.landlock_abi, masked, temporary=temporary),
            "seccomp": self._filter(rules, companion=False),
        }
        partial = landlock.is_partial(policy.mode, node.landlock_abi, filtered=node.filtered)
        return self.launch(self.argv, LANDLOCK, steps, partial=partial)

    def by_seatbelt(self, secret: tuple[masks.Mask, ...]) -> Launch:
        if not self.node.seatbelt:
            raise self.refusal(self.node.failure)
        masked = masks.of(secret)
        found = [folder_at(path) for path in (TEMPORARY, self.env.get("TMPDIR", "")) if path]
        temporary = [folder.path for folder in found if folder is not None]
        argv = seatbelt.wrap(self.policy, self.argv, masked, temporary)
        return self.launch(argv, SEATBELT)

    def launch(
        self,
        argv: tuple[str, ...],
        kind: str,
        steps: dict[str, Any] | None = None,
        *,
        partial: bool = False,
    ) -> Launch:
        contents: dict[str, Any] = {"cgroup": self.cgroup_procs} if self.cgroup_procs else {}
        writes = self.policy.mode is SandboxMode.WORKSPACE_WRITE
        if steps is not None:
            contents |= steps
            contents["no_new_privs"] = True
            contents["keyring"] = seccomp.keyctl_number(self.node.machine)
        return Launch(
            argv=argv,
            env=self.env,
            landlock=serialise(contents) if contents else None,
            confinement=Confinement(
                mode=self.policy.mode,
                network=self.policy.network,
                kind=kind,
                partial=partial,
                workspace_root=self.policy.workspace_root if writes else None,
            ),
        )

    def _filter(self, rules: tuple[seccomp.Rule, ...], *, companion: bool) -> str | None:
        if not self.node.filtered:
            return None
        program = seccomp.program(self.node.machine, rules, companion=companion)
        return base64.b64encode(program).decode("ascii")

    def _keep_temporary(self, *writable: str) -> None:
        """Drop a TMPDIR that cannot be written inside, so that programs fall back to /tmp."""
        chosen = self.env.get("TMPDIR")
        if chosen and not any(is_below(os.path.realpath(chosen), root) for root in writable):
            del self.env["TMPDIR"]


def serialise(steps: Mapping[str, Any]) -> bytes:
    """Write a plan in the form the applier reads."""
    return json.dumps({"v": applier.VERSION, **steps}).encode()


def _nodes() -> list[str]:
    return [path for path in bubblewrap.DEVICES if _is_node(path)]


def _is_node(path: str) -> bool:
    try:
        return stat.S_ISCHR(os.stat(path).st_mode)  # noqa: PTH116
    except OSError:
        return False
