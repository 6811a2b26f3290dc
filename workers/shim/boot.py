"""From a fresh interpreter to a listening shim that nobody's clean-up can reach.

The launcher is a child of the session worker and the leader of a session of its own, so
the worker's process group does not hold it; it forks and leaves at once, so the worker
has no child to kill either. The fork becomes the shim. It answers ``ok`` on stdout, or
one sentence, and then lets go of all three standard descriptors.
"""

import json
import os
import signal
import socket
import stat
import sys

BACKLOG = 16
_CHILD_SUBREAPER, _SET_NAME = 36, 15


def main(argv: list[str]) -> int:
    """Become a shim for the socket path in ``argv``; returns only in the launcher."""
    if len(argv) != 2:
        print("usage: python -I -S workers/shim/__main__.py SOCKET  (orders on stdin)")  # noqa: T201
        return 2
    orders = json.loads(sys.stdin.buffer.read(65536))
    sys.path += [path for path in orders["path"] if path not in sys.path]
    if os.fork() > 0:
        os._exit(0)
    try:
        _import_ptyprocess()
        from workers.shim.child import reset_signals
        from workers.shim.server import Server

        reset_signals()
        os.umask(0o077)
        os.chdir("/")
        _stand_alone()
        listener = listen(argv[1])
    except BaseException as error:  # noqa: BLE001  (whatever it is, the worker must hear it)
        os.write(1, f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
        os._exit(1)
    made = os.stat(argv[1]).st_ino  # noqa: PTH116
    server = Server(listener, key=orders["key"], orphan_grace_s=orders["orphan_grace_s"])
    os.write(1, b"ok")
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)
    _preload()
    status = 0
    try:
        server.run()
    except BaseException:  # noqa: BLE001  (nothing may be left running, whatever happened)
        status = 1
        _leave_a_trace(argv[1])
        _kill_all()
    _unlink(argv[1], made)
    os._exit(status)


def _import_ptyprocess() -> None:
    # It takes one function from shutil and brings its own when there is none: without the
    # compression libraries behind shutil the shim is half a megabyte smaller.
    sys.modules["shutil"] = None  # type: ignore[assignment]
    try:
        import ptyprocess  # noqa: F401
    finally:
        del sys.modules["shutil"]


def _preload() -> None:
    # Before anybody waits for it: a confined open then pays for no import.
    if sys.platform == "linux":
        try:
            import workers.shim.confine  # noqa: F401
        except Exception:  # noqa: BLE001  (a spawn that needs it says what is wrong)
            return


def listen(path: str) -> socket.socket:
    """Make the 0600 socket in its 0700 folder; a dead shim's leftover is replaced.

    Raises:
        OSError: The folder is not ours alone, the path is too long, or a shim lives there.
    """
    folder = os.stat(os.path.dirname(path))  # noqa: PTH116, PTH120
    if folder.st_uid != os.geteuid() or stat.S_IMODE(folder.st_mode) & 0o077:
        raise PermissionError("the socket's folder must be mode 0700 and our own")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.setblocking(False)
    old = os.umask(0o177)
    try:
        try:
            listener.bind(path)
        except OSError:
            if not _is_dead(path):
                raise
            os.unlink(path)  # noqa: PTH108
            listener.bind(path)
    finally:
        os.umask(old)
    listener.listen(BACKLOG)
    return listener


def _is_dead(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return stat.S_ISSOCK(os.stat(path).st_mode)  # noqa: PTH116
        except OSError:
            return False
        return False


def _stand_alone() -> None:
    """Adopt orphans from below, and shed the priorities of whoever started us."""
    if sys.platform == "linux":
        from workers.shim.child import prctl

        prctl(_CHILD_SUBREAPER, 1)
        _try(lambda: _write("/proc/self/comm", "fabric-shim"))
        _try(lambda: _write("/proc/self/oom_score_adj", "0"))
    _try(lambda: os.setpriority(os.PRIO_PROCESS, 0, 0))


def _try(step: object) -> None:
    try:
        step()  # type: ignore[operator]
    except OSError:
        return  # not ours to change; the worker's values stay


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _leave_a_trace(path: str) -> None:
    """A defect of ours must not vanish: the traceback goes beside the socket."""
    import traceback

    _try(lambda: _create(path + ".crash", traceback.format_exc()))


def _create(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(fd, text.encode("utf-8", "replace")[:65536])
    finally:
        os.close(fd)


def _kill_all() -> None:
    """Without a working loop: kill what is below until nothing is left, for a while."""
    import select

    from workers.shim.listing import processes
    from workers.shim.reap import has_children, reap

    listing = processes()
    for _ in range(200):
        reap()
        if not has_children():
            return
        for row in listing.below(os.getpid(), lambda pid, _: listing.row(pid)):
            _try(lambda pid=row.pid: os.kill(pid, signal.SIGKILL))
        select.poll().poll(10)


def _unlink(path: str, made: int) -> None:
    try:
        if os.stat(path).st_ino == made:  # noqa: PTH116
            os.unlink(path)  # noqa: PTH108
    except OSError:
        return
