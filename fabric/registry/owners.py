"""Owners: who may act, under which epoch, in which mode, until when.

Theory. An owner is a principal and an agent; the pair leads to at most one *live* owner.

    (absent) --acquire--> LIVE(epoch 1) --acquire--> LIVE(epoch + 1)
    LIVE --release | lease ends | the fabric shuts down--> DISPOSING
    DISPOSING --its last session is gone--> (tombstone)

A take-over raises the epoch; a caller with another epoch than the owner's is refused, so
the token of a crashed harness is worth nothing once its successor has acquired. Disposal
frees the pair at once: the next acquire makes a *different* owner, which shares nothing
with the one that is still being torn down.

*Activity* is the existence of any session record: opening, being rolled back, published,
closing, or left over from a failed cleanup. It is one dictionary, so no transition
between these can be missed, and the owner's mode may change only while it is empty.

Leases end on the monotonic clock, so a jump of the wall clock disposes of nobody; after a
restart every owner gets a whole lease again, because nobody could renew in between.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fabric.core.errors import (
    InternalError,
    InvalidRequestError,
    LimitReachedError,
    OwnerNotLiveError,
    PermissionDeniedError,
    SandboxModeLockedError,
)
from fabric.core.ids import AgentId, OwnerId, Principal, SessionId
from fabric.core.model import Caller, SandboxMode
from fabric.core.policy import OwnerPolicy
from fabric.core.policy import parse as parse_policies
from fabric.core.settings import RegistrySettings
from fabric.registry.instructions import Drop, Instruction, Kind, Put
from fabric.registry.tombstones import Tombstone, Tombstones

_RANK = {mode: rank for rank, mode in enumerate(SandboxMode)}


class OwnerState(StrEnum):
    """Whether an owner may still act."""

    LIVE = "live"
    DISPOSING = "disposing"


@dataclass(slots=True)
class Owner:
    """One owner. ``deadline`` is on the monotonic clock; ``why`` is set from disposal on."""

    owner_id: OwnerId
    principal: Principal
    agent: AgentId
    epoch: int
    mode: SandboxMode
    lease_s: float
    deadline: float
    state: OwnerState = OwnerState.LIVE
    why: str = ""
    warned: bool = False
    sessions: dict[SessionId, None] = field(default_factory=dict)
    names: dict[str, SessionId] = field(default_factory=dict)

    @property
    def is_live(self) -> bool:
        """Tell whether the owner may act."""
        return self.state is OwnerState.LIVE

    @property
    def is_active(self) -> bool:
        """Tell whether any session, open or failed cleanup of it exists."""
        return bool(self.sessions)

    def row(self) -> Put:
        """Return the row to write."""
        return Put(
            Kind.OWNER,
            self.owner_id,
            {
                "principal": self.principal,
                "agent": self.agent,
                "epoch": self.epoch,
                "mode": self.mode.value,
                "lease_s": self.lease_s,
                "state": self.state.value,
                "why": self.why,
            },
        )


class Owners:
    """All owners that are not gone."""

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._policies = parse_policies(settings.policies)
        self._owners: dict[OwnerId, Owner] = {}
        self._live: dict[tuple[Principal, AgentId], OwnerId] = {}
        self._per_principal: Counter[Principal] = Counter()
        self.tombstones = Tombstones(
            retention_s=settings.tombstone_retention_s, max_entries=settings.max_tombstones
        )

    def __iter__(self) -> Any:
        return iter(list(self._owners.values()))

    def __len__(self) -> int:
        return len(self._owners)

    def find(self, owner_id: OwnerId) -> Owner | None:
        """Return an owner that is live or being disposed of."""
        return self._owners.get(owner_id)

    def find_live(self, principal: Principal, agent: AgentId) -> Owner | None:
        """Return the live owner of a pair."""
        owner_id = self._live.get((principal, agent))
        return None if owner_id is None else self._owners[owner_id]

    def authorise(self, caller: Caller) -> Owner:
        """Return the caller's live owner. Raises: OwnerNotLiveError."""
        owner = self._owners.get(caller.owner_id)
        if owner is None or not owner.is_live:
            raise self.not_live(caller.owner_id)
        if caller.epoch != owner.epoch:
            raise OwnerNotLiveError(
                f"owner {owner.owner_id} was re-acquired (epoch {owner.epoch}); this token is of"
                f" epoch {caller.epoch} and is fenced",
                owner_id=owner.owner_id,
                epoch=owner.epoch,
            )
        return owner

    def not_live(self, owner_id: OwnerId) -> OwnerNotLiveError:
        """Say why an owner may not act."""
        owner = self._owners.get(owner_id)
        stone = self.tombstones.get(owner_id)
        why = owner.why if owner is not None else (stone.why if stone else "no such owner")
        return OwnerNotLiveError(f"owner {owner_id} is not live: {why}", owner_id=owner_id)

    def acquire(
        self,
        principal: Principal,
        agent: AgentId,
        mode: SandboxMode | None,
        lease_s: float | None,
        fresh_id: OwnerId,
        now: float,
    ) -> tuple[Owner, bool, list[Instruction]]:
        """Make an owner or take it over; the flag tells a take-over.

        Raises: InvalidRequestError, PermissionDeniedError, SandboxModeLockedError,
        LimitReachedError.
        """
        lease = self._lease(lease_s, None)
        self._check_mode(principal, mode)
        owner = self.find_live(principal, agent)
        if owner is not None:
            self._check_mode(principal, mode or owner.mode)
            self._change_mode(owner, mode)
            owner.epoch += 1
            owner.lease_s = lease if lease_s is not None else owner.lease_s
            self._extend(owner, now)
            return owner, True, [owner.row()]
        limit = self._settings.max_owners_per_principal
        if self._per_principal[principal] >= limit:
            raise LimitReachedError(
                f"principal {principal} has {limit} of {limit} owners; release one",
                limit=limit,
            )
        if fresh_id in self._owners or self.tombstones.get(fresh_id):
            raise InternalError(f"owner id {fresh_id} was used before")
        chosen = mode if mode is not None else self._default_mode(principal)
        owner = Owner(fresh_id, principal, agent, 1, chosen, lease, now + lease)
        self._add(owner)
        return owner, False, [owner.row()]

    def renew(self, caller: Caller, lease_s: float | None, now: float) -> list[Instruction]:
        """Extend the lease. Raises: OwnerNotLiveError, InvalidRequestError."""
        owner = self.authorise(caller)
        lease = self._lease(lease_s, owner)
        changed = lease != owner.lease_s
        owner.lease_s = lease
        self._extend(owner, now)
        return [owner.row()] if changed else []

    def set_mode(self, caller: Caller, mode: SandboxMode) -> list[Instruction]:
        """Change the mode while nothing of the owner is active.

        Raises: OwnerNotLiveError, PermissionDeniedError, SandboxModeLockedError.
        """
        owner = self.authorise(caller)
        self._check_mode(owner.principal, mode)
        return [owner.row()] if self._change_mode(owner, mode) else []

    def begin_disposal(self, owner: Owner, why: str) -> list[Instruction]:
        """Take the owner's rights away; its pair is free from here on."""
        owner.state = OwnerState.DISPOSING
        owner.why = why
        del self._live[owner.principal, owner.agent]
        return [owner.row()]

    def bury(self, owner: Owner, now: float, revision: int) -> list[Instruction]:
        """Forget an owner that has been disposed of and has nothing left."""
        del self._owners[owner.owner_id]
        self._per_principal[owner.principal] -= 1
        if not self._per_principal[owner.principal]:
            del self._per_principal[owner.principal]
        stone = Tombstone(owner.owner_id, owner.why, False, now, revision)
        return [Drop(Kind.OWNER, owner.owner_id), *self.tombstones.bury(owner.owner_id, stone)]

    def expired(self, now: float) -> list[Owner]:
        """List the live owners whose lease has ended."""
        return [o for o in self._owners.values() if o.is_live and o.deadline <= now]

    def to_warn(self, now: float) -> list[Owner]:
        """List the live owners in the last quarter of their lease that were not told yet."""
        due = []
        for owner in self._owners.values():
            if owner.is_live and not owner.warned and owner.deadline - now <= owner.lease_s / 4:
                owner.warned = True
                due.append(owner)
        return due

    def adopt(
        self,
        owner_id: OwnerId,
        principal: Principal,
        agent: AgentId,
        epoch: int,
        mode: SandboxMode,
        now: float,
    ) -> Owner | None:
        """Make an owner again from a session's labels, unless the pair has another by now."""
        if (principal, agent) in self._live:
            return None
        lease = self._settings.lease_s
        owner = Owner(owner_id, principal, agent, epoch, mode, lease, now + lease)
        self._add(owner)
        return owner

    def restore(self, key: str, body: dict[str, Any], now: float) -> None:
        """Put back a row of the journal, with a whole lease."""
        lease = float(body["lease_s"])
        owner = Owner(
            OwnerId(key),
            Principal(body["principal"]),
            AgentId(body["agent"]),
            int(body["epoch"]),
            SandboxMode(body["mode"]),
            lease,
            now + lease,
            OwnerState(body["state"]),
            str(body["why"]),
        )
        self._add(owner)

    def _add(self, owner: Owner) -> None:
        self._owners[owner.owner_id] = owner
        self._per_principal[owner.principal] += 1
        if owner.is_live:
            self._live[owner.principal, owner.agent] = owner.owner_id

    @staticmethod
    def _extend(owner: Owner, now: float) -> None:
        owner.deadline = now + owner.lease_s
        owner.warned = False

    def _lease(self, lease_s: float | None, owner: Owner | None) -> float:
        if lease_s is None:
            return owner.lease_s if owner is not None else self._settings.lease_s
        low, high = self._settings.min_lease_s, self._settings.max_lease_s
        if not low <= lease_s <= high:
            raise InvalidRequestError(
                f"lease_s must lie between {low:g} and {high:g} seconds, not {lease_s:g}",
                field="lease_s",
            )
        return lease_s

    def policy(self, principal: Principal) -> OwnerPolicy:
        """Return what an operator has laid down for a principal."""
        return self._policies.of(principal)

    def of_principal(self, principal: Principal) -> list[Owner]:
        """List a principal's owners, those being disposed of too."""
        return [owner for owner in self._owners.values() if owner.principal == principal]

    def _max_mode(self, principal: Principal) -> SandboxMode:
        own = self.policy(principal).max_mode or self._settings.max_mode
        return min(own, self._settings.max_mode, key=_RANK.__getitem__)

    def _default_mode(self, principal: Principal) -> SandboxMode:
        return min(self._settings.default_mode, self._max_mode(principal), key=_RANK.__getitem__)

    def _check_mode(self, principal: Principal, mode: SandboxMode | None) -> None:
        limit = self._max_mode(principal)
        if mode is not None and _RANK[mode] > _RANK[limit]:
            raise PermissionDeniedError(
                f"mode {mode.value} is above the highest one allowed here, {limit.value}",
                mode=mode.value,
                max_mode=limit.value,
            )

    @staticmethod
    def _change_mode(owner: Owner, mode: SandboxMode | None) -> bool:
        if mode is None or mode is owner.mode:
            return False
        if owner.is_active:
            raise SandboxModeLockedError(
                f"the sandbox mode stays {owner.mode.value} and cannot become {mode.value} while"
                f" the owner has {len(owner.sessions)} session(s) open, opening or not cleaned up;"
                " close them and wait for pending opens first",
                mode=owner.mode.value,
                wanted=mode.value,
                sessions=len(owner.sessions),
            )
        owner.mode = mode
        return True
