"""Starts the session's program on a new pseudo-terminal, with nothing inherited by accident.

``ptyprocess`` forks, makes the terminal the controlling one, closes every descriptor
beyond 0-2 and reports a failing exec. What is left to the child before exec happens in
``child``. Whatever fails is an error with the name of the step; the program is never started
half prepared.
"""

import errno
import fcntl
import os
import signal
import struct
import termios
from types import FrameType

from ptyprocess import PtyProcess

from workers.shim.child import Prepare, Who
from workers.shim.plan import Plan, SpawnError
from workers.shim.tree import Identity

HEADER_BYTES = 4096
"""Room for the byte log's own header before its ring."""
EXEC_LIMIT_S = 20
"""A folder or program on a dead network file system must not hold the shim for ever."""
_NO_PTY = (errno.ENOSPC, errno.ENXIO, errno.ENODEV)


class _Pty(PtyProcess):  # type: ignore[misc]
    """Closes without the sleep, the signals and the wait of its base."""

    closed: bool

    def close(self, force: bool = True) -> None:
        """Close the master."""
        if not self.closed:
            self.closed = True
            self.fileobj.close()


class Terminal:
    """A started program: its process, terminal master and byte log."""

    def __init__(self, process: _Pty, log_fd: int, plan: Plan) -> None:
        self._process = process  # keeps the master open as long as it is referenced
        self.pid: int = process.pid
        self.master_fd: int = process.fd
        self.log_fd = log_fd
        self.labels = plan.labels
        self.wrappers = plan.wrappers
        self.grace_s = plan.grace_s
        self.shell_grace_s = plan.shell_grace_s
        self.identity: Identity = (process.pid, 0)

    def resize(self, rows: int, cols: int) -> None:
        """Set the window size; the foreground group gets SIGWINCH when it changes."""
        fcntl.ioctl(self.master_fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def spawn(plan: Plan) -> Terminal:
    """Start the program of a plan.

    Raises:
        SpawnError: With the step that failed; nothing is left of the attempt.
    """
    program = _find(plan)
    who = Who.of(plan.run_as)
    if plan.landlock is not None:
        _import_confine()  # a module that cannot be loaded is found before the fork
    _check_terminals()
    log_fd = _create_log(plan.log_bytes)
    try:
        process = _start(program, plan, who)
    except BaseException:
        os.close(log_fd)
        raise
    return Terminal(process, log_fd, plan)


def _start(program: str, plan: Plan, who: "Who") -> _Pty:
    me = os.getpid()
    before = _open_fds()

    def too_long(_signo: int, _frame: FrameType | None) -> None:
        if os.getpid() == me:
            raise SpawnError("exec", f"{program} did not start within {EXEC_LIMIT_S} s")

    old = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, EXEC_LIMIT_S)
    try:
        return _Pty.spawn(  # type: ignore[no-any-return]
            [program, *plan.argv[1:]],
            env=plan.env,
            preexec_fn=Prepare(plan, who),
            dimensions=(plan.rows, plan.cols),
        )
    except BaseException as error:  # noqa: BLE001  (it may be the child that raises)
        if os.getpid() != me:
            os._exit(127)  # the child, failing where ptyprocess does not look: never our loop
        error.__traceback__ = None  # lets go of ptyprocess's frame and its half-made terminal
        failure = _explained(error, program)
    finally:
        if os.getpid() == me:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
    for fd in _open_fds() - before:
        os.close(fd)
    raise failure


def _explained(error: BaseException, program: str) -> BaseException:
    """Turn what ptyprocess raises into a step, a number and a sentence."""
    if isinstance(error, SpawnError) or not isinstance(error, Exception):
        return error
    if isinstance(error, RuntimeError) and str(error).count("\n") >= 2:
        step, number, message = str(error).split("\n", 2)
        return SpawnError(step, message, int(number) or None)
    if isinstance(error, FileNotFoundError):
        return SpawnError("exec", f"{program} was not found", errno.ENOENT)
    if isinstance(error, OSError):
        if error.errno in _NO_PTY or error.errno is None:
            return _no_terminal(error.errno)
        step = "exec" if len(error.args) == 1 else "fork"
        reason = os.strerror(error.errno)
        return SpawnError(step, f"{program} could not be started: {reason}", error.errno)
    return SpawnError("prepare", f"{program} could not be started: {error}")


def _find(plan: Plan) -> str:
    """Resolve argv[0] as the session's own PATH and folder say, with words when it fails."""
    name = plan.argv[0]
    if "/" in name:
        candidates = [os.path.join(plan.cwd, name)]  # noqa: PTH118  (no pathlib in the shim)
    else:
        path = plan.env.get("PATH", os.defpath)
        folders = [os.path.join(plan.cwd, folder) for folder in path.split(os.pathsep)]  # noqa: PTH118
        candidates = [os.path.join(folder, name) for folder in folders]  # noqa: PTH118
    denied = None
    for candidate in candidates:
        if os.path.isfile(candidate):  # noqa: PTH113
            if os.access(candidate, os.X_OK):
                return candidate
            denied = candidate
    if denied is not None:
        raise SpawnError("exec", f"{denied} is not executable", errno.EACCES)
    where = "" if "/" in name else " in the session's PATH"
    raise SpawnError("exec", f"the program {name} was not found{where}", errno.ENOENT)


def _import_confine() -> None:
    try:
        import workers.shim.confine  # noqa: F401  (only to see that it can be)
    except Exception as error:  # noqa: BLE001  (typed, whatever is wrong with it)
        raise SpawnError("confine", f"confinement is not available: {error}") from None


def _no_terminal(number: int | None) -> SpawnError:
    return SpawnError(
        "pty", f"no pseudo-terminal is left on this node{_counted()}", number, code="PTY_EXHAUSTED"
    )


def _counted() -> str:
    """Say what the kernel counts on the whole machine; a devpts of our own may have less."""
    numbers = []
    for name in ("nr", "max"):
        try:
            with open(f"/proc/sys/kernel/pty/{name}") as file:  # noqa: PTH123
                numbers.append(int(file.read()))
        except (OSError, ValueError):
            return ""
    return f" (the machine has {numbers[0]} of at most {numbers[1]})"


def _check_terminals() -> None:
    # ptyprocess cannot say whether fork or terminal failed, so the terminal is tried first.
    try:
        fds = os.openpty()
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise SpawnError("fork", os.strerror(error.errno), error.errno) from None
        raise _no_terminal(error.errno) from None
    for fd in fds:
        os.close(fd)


def _create_log(log_bytes: int) -> int:
    size = HEADER_BYTES + log_bytes
    try:
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("fabric-bytelog", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        else:
            import tempfile  # macOS only; it costs a fifth of the start

            fd, path = tempfile.mkstemp(prefix="fabric-bytelog-")
            os.unlink(path)  # noqa: PTH108
        os.ftruncate(fd, size)
        if hasattr(os, "memfd_create"):
            # Nobody can shrink it under a reader that has it mapped (SIGBUS), nor let it grow.
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    except OSError as error:
        raise SpawnError("log", f"no byte log: {error.strerror}", error.errno) from None
    return fd


def _open_fds() -> set[int]:
    fds = set()
    for name in os.listdir("/dev/fd"):  # noqa: PTH208
        try:
            os.fstat(int(name))
        except OSError:
            continue  # the listing's own
        fds.add(int(name))
    return fds
