"""What the forked child does before it becomes the program, and whom it becomes.

Signals, umask, limits, the part of the confinement that needs the service's rights,
identity, folder, the rest of the confinement: in this order, since each step may take away
the right to do an earlier one. A step that fails is reported through ptyprocess's pipe as
its name, an errno and a sentence, and nothing is started.
"""

import errno
import os
import resource
import signal
import sys

from workers.shim.plan import Plan, SpawnError

_PDEATHSIG = 1


class Prepare:
    """Runs in the child between fork and exec; reports as ``step``, errno, sentence."""

    def __init__(self, plan: Plan, who: "Who") -> None:
        self._plan = plan
        self._who = who
        self._parent = os.getpid()

    def __call__(self) -> None:
        """Take the steps; for ptyprocess, as its ``preexec_fn``."""
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


class Who:
    """Whom the program runs as; resolved before the fork, taken on after it."""

    def __init__(self, uid: int, gid: int, name: str | None) -> None:
        self._uid = uid
        self._gid = gid
        self._name = name

    @classmethod
    def of(cls, run_as: str | None) -> "Who":
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


def _lower(number: int, limit: int) -> None:
    """Set soft and hard limit; never above the hard one in force."""
    hard = resource.getrlimit(number)[1]
    if hard != resource.RLIM_INFINITY:
        limit = hard if limit == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(number, (limit, limit))
