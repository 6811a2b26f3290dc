"""Who of the views of a shared terminal controls it.

At most one view is the controller; every other one, and every view that asked to only
read, is a reader. A controller that attaches gets a private proof, made anew each time;
when its connection is lost it may come back with that proof while its grace runs, and
nobody else can take its place until the grace is over and what it held is recovered.
Only the proof's hash is kept. Pure: times and proofs are arguments.
"""

import hashlib
import hmac
from dataclasses import dataclass

READONLY = "readonly"
OCCUPIED = "occupied"
INVALID_RESUME = "invalid-resume"


@dataclass(slots=True)
class Controllers:
    """The place of the controller of one terminal."""

    grace_s: float
    view: str | None = None
    absent_since: float | None = None
    _proof: bytes = b""

    def claim(self, view: str, proof: str, *, readonly: bool, resume: str, at: float) -> str:
        """Attach a view; returns why it is a reader, empty for the controller."""
        if readonly:
            return READONLY
        if resume:
            absent = self.absent_since
            if absent is None or at >= absent + self.grace_s or not self._fits(resume):
                return INVALID_RESUME
        elif self.view is not None:
            return OCCUPIED
        self.view = view
        self.absent_since = None
        self._proof = _digest(proof)
        return ""

    def left(self, view: str, at: float) -> bool:
        """Note that a view's connection is gone; True when it was the controller's."""
        if view != self.view or self.absent_since is not None:
            return False
        self.absent_since = at
        return True

    def free(self, at: float, *, recovered: bool) -> bool:
        """Give the place up once the grace is over and nothing is held any more."""
        absent = self.absent_since
        if absent is None or at < absent + self.grace_s or not recovered:
            return False
        self.revoke()
        return True

    def revoke(self) -> None:
        """Forget the controller and its proof, as a reset does."""
        self.view = self.absent_since = None
        self._proof = b""

    def _fits(self, proof: str) -> bool:
        return bool(self._proof) and hmac.compare_digest(self._proof, _digest(proof))


def _digest(proof: str) -> bytes:
    return hashlib.sha256(proof.encode()).digest()
