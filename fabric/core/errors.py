"""The errors of the fabric: one base, one reason a class.

``reason`` says what happened and never changes its meaning; the message is for people
and is never parsed. ``metadata`` holds flat strings. ``args`` stays ``(message,)`` so
that an error survives pickling between processes. The gRPC code of each reason is in
``fabric/wire/status.py``, its exit code in ``EXIT_CODES`` below.
"""

from typing import ClassVar


class FabricError(Exception):
    """Base of everything the fabric raises on purpose; reason ``INTERNAL`` by itself."""

    reason: ClassVar[str] = "INTERNAL"
    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False

    def __init__(self, message: str = "internal error", **metadata: object) -> None:
        super().__init__(message)
        self.metadata: dict[str, str] = {
            key: str(value) for key, value in metadata.items() if value is not None
        }

    @property
    def message(self) -> str:
        """The sentence for a person."""
        return str(self.args[0]) if self.args else ""

    @property
    def worth_repeating(self) -> bool:
        """Tell whether the same call may fare better later or elsewhere."""
        return self.retryable

    def with_metadata(self, **metadata: object) -> "FabricError":
        """Add facts to the error and return it."""
        for key, value in metadata.items():
            if value is not None:
                self.metadata[key] = str(value)
        return self


class InternalError(FabricError):
    """Something that must not happen did; details are in the log only."""


class UnknownReasonError(FabricError):
    """A peer of another version reported a reason this side does not know."""


class InvalidRequestError(FabricError):
    """The request is malformed; the message says how to mend it."""

    reason = "INVALID_REQUEST"
    exit_code = 2


class InputTooLargeError(InvalidRequestError):
    """The input is above a size limit; nothing was written."""

    reason = "INPUT_TOO_LARGE"


class InputLineTooLongError(InvalidRequestError):
    """A line exceeds the terminal's canonical limit; nothing was written."""

    reason = "INPUT_LINE_TOO_LONG"


class InvalidArgumentsError(InvalidRequestError):
    """The arguments of a tool call are wrong; the message lists every fault."""

    reason = "INVALID_ARGS"


class UnknownToolError(InvalidRequestError):
    """No tool of this name is offered."""

    reason = "UNKNOWN_TOOL"


class RequestIdConflictError(InvalidRequestError):
    """The request id was used before with other content."""

    reason = "REQUEST_ID_CONFLICT"


class SettingsError(InvalidRequestError):
    """One or more settings are wrong; the message lists every fault."""

    reason = "INVALID_SETTINGS"


class UnauthenticatedError(FabricError):
    """No valid credential came with the call."""

    reason = "UNAUTHENTICATED"
    exit_code = 4


class PermissionDeniedError(FabricError):
    """The credential is valid but its policy does not allow this."""

    reason = "PERMISSION_DENIED"
    exit_code = 4


class ForeignSessionError(FabricError):
    """The session or task belongs to another owner."""

    reason = "FOREIGN_SESSION"
    exit_code = 4


class OwnerNotLiveError(FabricError):
    """The owner was released, expired, or re-acquired under a newer epoch."""

    reason = "OWNER_NOT_LIVE"
    exit_code = 4


class SessionNotFoundError(FabricError):
    """No session has this id (it never existed, or it was closed)."""

    reason = "SESSION_NOT_FOUND"
    exit_code = 3


class SessionLostError(SessionNotFoundError):
    """The node or the worker of the session died; its shell cannot be reached."""

    reason = "SESSION_LOST"


class TaskNotFoundError(FabricError):
    """No task has this id."""

    reason = "TASK_NOT_FOUND"
    exit_code = 3


class NodeNotFoundError(FabricError):
    """No live node has this name."""

    reason = "NODE_NOT_FOUND"
    exit_code = 3


class NameTakenError(FabricError):
    """The owner already has a session, or a pending open, of this name."""

    reason = "NAME_TAKEN"
    exit_code = 5


class SessionStateError(FabricError):
    """The session cannot do this now."""

    reason = "SESSION_STATE"
    exit_code = 5


class SendActiveError(SessionStateError):
    """Another send holds the session's slot."""

    reason = "SEND_ACTIVE"


class SessionExitedError(SessionStateError):
    """The session's top-level process has ended."""

    reason = "SESSION_EXITED"


class SessionClosingError(SessionStateError):
    """The session is being closed."""

    reason = "SESSION_CLOSING"


class InputBlockedError(SessionStateError):
    """The program does not read its input; the part not taken was withdrawn."""

    reason = "INPUT_BLOCKED"


class QueueBlockedError(SessionStateError):
    """Recovery failed; only a reset helps."""

    reason = "QUEUE_BLOCKED"


class NotControllerError(SessionStateError):
    """This view may not write."""

    reason = "NOT_CONTROLLER"


class SignalRefusedError(SessionStateError):
    """The signal was not sent: no foreground group, or SIGKILL at the shell."""

    reason = "SIGNAL_REFUSED"


class SandboxModeLockedError(SessionStateError):
    """The owner's sandbox mode cannot change while it has sessions."""

    reason = "SANDBOX_MODE_LOCKED"


class SandboxUnavailableError(SessionStateError):
    """The node cannot confine as the policy demands; nothing was started."""

    reason = "SANDBOX_UNAVAILABLE"


class SpawnFailedError(SessionStateError):
    """The program could not be started."""

    reason = "SPAWN_FAILED"


class UnsupportedError(SessionStateError):
    """This platform, session type or deployment does not offer the operation."""

    reason = "UNSUPPORTED"


class StaleGenerationError(FabricError):
    """The handle names an older generation, adoption or epoch."""

    reason = "STALE_GENERATION"
    exit_code = 5


class CursorExpiredError(FabricError):
    """The offset lies below what is retained; metadata has ``oldest_offset``."""

    reason = "CURSOR_EXPIRED"
    exit_code = 5


class OutcomeUnknownError(FabricError):
    """The worker died under the call; whether it took effect cannot be known."""

    reason = "OUTCOME_UNKNOWN"
    exit_code = 5


class CancelledCallError(FabricError):
    """The caller cancelled the call or ran out of time; it was rolled back."""

    reason = "CALL_CANCELLED"
    exit_code = 8


class LimitReachedError(FabricError):
    """A limit is reached; the same call may pass later."""

    reason = "LIMIT_REACHED"
    exit_code = 6


class QueueFullError(LimitReachedError):
    """The queue holds as many operations as it may."""

    reason = "QUEUE_FULL"


class CapacityReachedError(LimitReachedError):
    """No node has room for another session, or the owner has its share."""

    reason = "CAPACITY_REACHED"


class PtyExhaustedError(LimitReachedError):
    """The node has no pseudo-terminal left."""

    reason = "PTY_EXHAUSTED"


class RegistryUnavailableError(FabricError):
    """The registry is away for the moment; the client retries by itself."""

    reason = "REGISTRY_UNAVAILABLE"
    exit_code = 7
    retryable = True


class GatewayUnavailableError(FabricError):
    """No gateway answers."""

    reason = "GATEWAY_UNAVAILABLE"
    exit_code = 7
    retryable = True


class DrainingError(FabricError):
    """This gateway or node takes no new work; another one does.

    ``for_good`` in the metadata: the whole fabric goes down, there is no other one.
    """

    reason = "DRAINING"
    exit_code = 7
    retryable = True

    @property
    def worth_repeating(self) -> bool:
        """Tell whether there may be another one."""
        return self.metadata.get("for_good") != "true"


class StartupTimeoutError(FabricError):
    """The shell did not become ready in time; it was removed."""

    reason = "STARTUP_TIMEOUT"
    exit_code = 8


class DeadlineError(FabricError):
    """The call's own deadline passed."""

    reason = "DEADLINE"
    exit_code = 8


class CleanupIncompleteError(FabricError):
    """Processes survived the teardown; the message and metadata name them."""

    reason = "CLEANUP_INCOMPLETE"
    exit_code = 9


def _all(cls: type[FabricError]) -> list[type[FabricError]]:
    found = [cls]
    for sub in cls.__subclasses__():
        found.extend(_all(sub))
    return found


def error_classes() -> list[type[FabricError]]:
    """List every class, the base first; each has a reason of its own but the two INTERNAL ones."""
    return _all(FabricError)


_BY_REASON: dict[str, type[FabricError]] = {
    cls.reason: cls for cls in error_classes() if cls not in (FabricError, UnknownReasonError)
}


def error_of(reason: str, message: str, metadata: dict[str, str] | None = None) -> FabricError:
    """Rebuild an error from its reason; an unknown reason stays readable on the instance."""
    cls = _BY_REASON.get(reason, UnknownReasonError)
    error = cls(message)
    error.metadata.update(metadata or {})
    if cls is UnknownReasonError:
        error.__dict__["reason"] = reason
    return error
