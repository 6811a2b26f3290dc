"""A spawn request, checked field by field, and the error when it cannot be met."""

import resource

from workers.shim import protocol
from workers.shim.protocol import Message

MAX_LOG_BYTES = 1 << 30


class SpawnError(Exception):
    """The program could not be started; ``step`` says where it failed."""

    def __init__(
        self, step: str, message: str, number: int | None = None, code: str = "SPAWN_FAILED"
    ) -> None:
        super().__init__(message)
        self.step = step
        self.number = number
        self.code = code


class Plan:
    """A checked spawn request."""

    def __init__(self, message: Message) -> None:
        self.argv = protocol.texts(message, "argv")
        if not self.argv or not self.argv[0]:
            raise protocol.invalid("argv must name a program")
        self.env = protocol.text_map(message, "env")
        self.cwd = protocol.text(message, "cwd")
        if not self.cwd.startswith("/"):
            raise protocol.invalid("cwd must be an absolute path")
        self.rows = protocol.whole(message, "rows", 1, 65535)
        self.cols = protocol.whole(message, "cols", 1, 65535)
        self.log_bytes = protocol.whole(message, "log_bytes", 4096, MAX_LOG_BYTES)
        self.labels = protocol.unpack(message, "labels", protocol.MAX_LABELS_BYTES)
        self.umask = protocol.whole(message, "umask", 0, 0o777)
        self.run_as = protocol.optional_text(message, "run_as")
        self.rlimits = _limits(protocol.whole_map(message, "rlimits"))
        confined = message.get("landlock") is not None
        self.landlock = protocol.unpack(message, "landlock") if confined else None
        self.wrappers = protocol.texts(message, "wrappers")
        self.grace_s = protocol.seconds(message, "grace_s")
        self.shell_grace_s = protocol.seconds(message, "shell_grace_s")


def _limits(named: dict[str, int]) -> list[tuple[int, int]]:
    limits = []
    for name, limit in named.items():
        upper = name.upper()
        number = getattr(
            resource, upper if upper.startswith("RLIMIT_") else f"RLIMIT_{upper}", None
        )
        if not isinstance(number, int):
            raise protocol.invalid(f"this system has no resource limit {name}")
        limits.append((number, limit))
    return limits
