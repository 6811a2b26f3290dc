"""What the gateway counts of its calls: one hook in the guard, a microsecond a call.

Rows are taken once for each method and kept. What can be asked for later (calls that run,
owners, nodes) is asked for when somebody looks and not kept up to date by every call.
"""

from collections.abc import Callable
from typing import Any

from fabric.core import metrics as m
from fabric.core.metrics import Metrics
from fabric.core.model import Evidence, WaitReason
from fabric.wire import scalars
from fabric.wire.methods import Method

_SEND = "TerminalService.Send"


def label_of(method: Method) -> str:
    """Name a method as metrics do, without its package."""
    return f"{method.service.rpartition('.')[2]}.{method.name}"


class Meter:
    """The rows of one method."""

    __slots__ = ("_bytes_in", "_bytes_out", "_ends", "_store", "answered", "label")

    def __init__(self, label: str, store: Metrics, answered: Callable[[Any], None] | None) -> None:
        self.label = label
        self.answered = answered
        self._store = store
        self._ends: dict[str, m.Histogram] = {}
        self._bytes_in = store.counter(m.GATEWAY_REQUEST_BYTES, label)
        self._bytes_out = store.counter(m.GATEWAY_RESPONSE_BYTES, label)

    def ended(self, code: str, seconds: float, bytes_in: int, bytes_out: int) -> None:
        """Count a call that has ended."""
        row = self._ends.get(code)
        if row is None:
            row = self._store.histogram(m.GATEWAY_RPC_SECONDS, self.label, code)
            self._ends[code] = row
        row.observe(seconds)
        self._bytes_in.value += bytes_in
        self._bytes_out.value += bytes_out


class Meters:
    """The rows of a gateway."""

    def __init__(self, store: Metrics) -> None:
        self.store = store
        self._errors: dict[str, m.Counter] = {}
        self._sends: dict[tuple[int, int], m.Counter] = {}
        self._waits = store.histogram(m.GATEWAY_TURN_WAIT_SECONDS)

    def of(self, method: Method) -> Meter:
        """Return the rows of a method."""
        label = label_of(method)
        return Meter(label, self.store, self.sent if label == _SEND else None)

    def failed(self, reason: str) -> None:
        """Count an error by its reason."""
        row = self._errors.get(reason)
        if row is None:
            row = self._errors[reason] = self.store.counter(m.GATEWAY_ERRORS, reason)
        row.value += 1

    def sent(self, response: Any) -> None:
        """Count a send by what its answer says."""
        key = (response.wait_reason, response.evidence)
        row = self._sends.get(key)
        if row is None:
            row = self._sends[key] = self.store.counter(
                m.GATEWAY_SENDS,
                scalars.WAIT_REASON.known_or(key[0], WaitReason.TIMEOUT),
                scalars.EVIDENCE.known_or(key[1], Evidence.NONE),
            )
        row.value += 1

    def settled(self, wait_reason: WaitReason, evidence: Evidence) -> None:
        """Count a send that came as a tool call."""
        self.store.counter(m.GATEWAY_SENDS, wait_reason, evidence).value += 1

    def waited(self, seconds: float) -> None:
        """Count a wait for an owner's turn."""
        self._waits.observe(seconds)
