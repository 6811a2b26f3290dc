"""Starts the session's program on a new pseudo-terminal, with nothing inherited by accident.

``ptyprocess`` forks, makes the terminal the controlling one, closes every descriptor
beyond 0-2 and reports a failing exec. What is left to the child before exec happens in
``_Prepare``: signals, umask, limits, the part of the confinement that needs the service's
rights, identity, folder, the rest of the confinement. In this order, since each step may
take away the right to do an earlier one. Any of them failing is an error with the step's
name; the program is never started half prepared.
"""

import errno
import fcntl
import os
import resource
import signal
import struct
import sys
import termios
from types import FrameType

from ptyprocess import PtyProcess

from workers.shim import protocol
from workers.shim.protocol import Message
from workers.shim.tree import Identity

HEADER_BYTES = 4096
"""Room for the byte log's own header before its ring."""
MAX_LOG_BYTES = 1 << 30
EXEC_LIMIT_S = 20
"""A folder or program on a dead network file system must not hold the shim for ever."""
_NO_PTY = (errno.ENOSPC, errno.ENXIO, errno.ENODEV)
_PDEATHSIG = 1


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
    who = _Who.of(plan.run_as)
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


def _start(program: str, plan: Plan, who: "_Who") -> _Pty:
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
            preexec_fn=_Prepare(plan, who),
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


class _Prepare:
    """Runs in the child between fork and exec; reports as ``step``, errno, sentence."""

    def __init__(self, plan: Plan, who: "_Who") -> None:
        self._plan = plan
        self._who = who
        self._parent = os.getpid()

    def __call__(self) -> None:
        plan = self._plan
        step = "signals"
        try:
            reset_signals()
            os.umask(plan.umask)
            step = "rlimits"
            for number, limit in plan.rlimits:
                _lower(number, limit)
            step = "confine"
            if plan.landlock is not None:
                from workers.shim import confine  # loaded by the parent already

                confine.prepare(plan.landlock)  # needs the service's own rights
            step = "run_as"
            self._who.become()
            _die_with_parent(self._parent)  # a change of user would undo it
            step = "cwd"
            os.chdir(plan.cwd)
            step = "confine"
            if plan.landlock is not None:
                confine.apply(plan.landlock, prepared=True)
        except BaseException as error:  # noqa: BLE001  (nothing may lead to exec)
            code = error.errno if isinstance(error, OSError) else None
            reason = os.strerror(code) if code else str(error) or type(error).__name__
            subject = {"cwd": f"the folder {plan.cwd}", "run_as": f"the user {plan.run_as}"}
            sentence = f"{subject.get(step, step)} cannot be used: {reason}"
            raise RuntimeError(f"{step}\n{code or 0}\n{sentence[:800]}") from None


def reset_signals() -> None:
    """Give every signal its default action and unblock them all."""
    signal.set_wakeup_fd(-1)
    for signo in signal.valid_signals():
        if signo not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(signo, signal.SIG_DFL)
            except (OSError, ValueError):
                continue  # reserved by the C library
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def prctl(option: int, value: int) -> None:
    """Call prctl(2) with one number.

    Raises:
        OSError: The kernel refused.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _die_with_parent(parent: int) -> None:
    # The shim is what keeps the promise of leaving nothing behind; should it be killed, a
    # hang-up is what the shell would get from a closed terminal too.
    if sys.platform == "linux":
        prctl(_PDEATHSIG, signal.SIGHUP)
        if os.getppid() != parent:
            os._exit(127)


class _Who:
    """Whom the program runs as; resolved before the fork, taken on after it."""

    def __init__(self, uid: int, gid: int, name: str | None) -> None:
        self._uid = uid
        self._gid = gid
        self._name = name

    @classmethod
    def of(cls, run_as: str | None) -> "_Who":
        """Look a user up by name or number; None stays as we are."""
        if run_as is None:
            return cls(-1, -1, None)
        import pwd

        try:
            entry = pwd.getpwuid(int(run_as)) if run_as.isdigit() else pwd.getpwnam(run_as)
        except (KeyError, OverflowError):
            raise SpawnError("run_as", f"there is no user {run_as!r} on this node") from None
        if entry.pw_uid == os.geteuid():
            return cls(-1, -1, None)
        if os.geteuid() != 0:
            raise SpawnError(
                "run_as",
                f"the service is not root and cannot start programs as {run_as!r}",
                errno.EPERM,
            )
        return cls(entry.pw_uid, entry.pw_gid, entry.pw_name)

    def become(self) -> None:
        """Give up root for good; the terminal changes hands too."""
        if self._name is None:
            return
        os.fchown(0, self._uid, -1)
        os.initgroups(self._name, self._gid)
        os.setresgid(self._gid, self._gid, self._gid)
        os.setresuid(self._uid, self._uid, self._uid)


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


def _lower(number: int, limit: int) -> None:
    """Set soft and hard limit; never above the hard one in force."""
    hard = resource.getrlimit(number)[1]
    if hard != resource.RLIM_INFINITY:
        limit = hard if limit == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(number, (limit, limit))


def _import_confine() -> None:
    try:
        import workers.shim.confine  # noqa: F401  (only to see that it can be)
    except Exception as error:  # noqa: BLE001  (typed, whatever is wrong with it)
        raise SpawnError("confine", f"confinement is not available: {error}") from None


def _no_terminal(number: int | None) -> SpawnError:
    return SpawnError(
        "pty", "no pseudo-terminal is left on this node", number, code="PTY_EXHAUSTED"
    )


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
