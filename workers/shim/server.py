"""The shim's life: one loop, one holder, one terminal, and the end of everything below it.

Idle until told to spawn; then the parent of the session's program until the holder asks
for the teardown, says quit, or no holder has been there for the orphan grace. Nothing
in the loop blocks but the fork of the one spawn.
"""

import math
import os
import select
import signal
import socket
import time
from _operator import _compare_digest as compare_digest  # hmac's own, without its OpenSSL
from types import FrameType

from workers.shim import protocol
from workers.shim.holder import Connection, may_connect
from workers.shim.listing import processes
from workers.shim.plan import Plan, SpawnError
from workers.shim.protocol import Message, ProtocolError
from workers.shim.reap import Ender, Ending, has_children, reap, signal_name
from workers.shim.spawn import Terminal, spawn
from workers.shim.teardown import Ended, Teardown

HELLO_S = 5.0
MAX_STRANGERS = 16
MAX_RECEIPT = 4096
LEAVE_ATTEMPTS = 5
RETRY_S = 1.0
DEFAULT_GRACE_S = 3.0
DEFAULT_SHELL_GRACE_S = 1.0


class Server:
    """Everything one shim knows. ``key`` is what a holder must offer."""

    def __init__(self, listener: socket.socket, *, key: str, orphan_grace_s: float) -> None:
        self._listener = listener
        self._key = key.encode()
        self._orphan_grace_s = orphan_grace_s
        self._clock = time.monotonic
        self._processes = processes()
        self._poll = select.poll()
        self._peers: dict[int, Connection] = {}
        self._holder: Connection | None = None
        self._adoption = 0
        self._terminal: Terminal | None = None
        self._ending: Ending | None = None
        self._ender: Ender | None = None
        self._ender_since = 0.0
        self._ended: list[Ended] = []
        self._waiters: list[tuple[Connection, object]] = []
        self._quits: list[tuple[Connection, object]] = []
        self._orphan_until: float | None = self._clock() + orphan_grace_s
        self._is_leaving = False
        self._attempts = 0
        self._is_terminated = False
        self._is_over = False

    def run(self) -> None:
        """Serve until there is nothing left to serve."""
        wake, wake_write = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _note)
        signal.signal(signal.SIGTERM, self._on_terminate)
        for signo in (signal.SIGPIPE, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(signo, signal.SIG_IGN)
        self._poll.register(wake, select.POLLIN)
        self._poll.register(self._listener, select.POLLIN)
        while not self._is_over:
            for fd, event in self._poll.poll(self._timeout_ms()):
                if fd == wake:
                    os.read(wake, 4096)
                elif fd == self._listener.fileno():
                    self._accept()
                elif fd in self._peers:
                    self._serve(self._peers[fd], event)
                elif self._ender is not None:
                    self._ender.readable(fd)
            self._collect()
            self._timers()
            self._tidy()
        for peer in self._peers.values():
            peer.flush()  # closed by the exit, after the socket's file is gone

    # -- time -----------------------------------------------------------------------

    def _timeout_ms(self) -> int | None:
        due = [peer.until for peer in self._peers.values() if peer.until is not None]
        if self._orphan_until is not None:
            due.append(self._orphan_until)
        if self._ender is not None and self._ender.until is not None:
            due.append(self._ender.until)
        if not due:
            return None
        return max(0, math.ceil((min(due) - self._clock()) * 1000))

    def _timers(self) -> None:
        now = self._clock()
        for peer in self._peers.values():
            if peer.until is not None and now >= peer.until:
                peer.is_lost = True
        ender = self._ender
        if ender is not None:
            if ender.until is not None and now >= ender.until:
                ender.tick()
            if ender.done is not None:
                self._on_ended(ender)
        if self._is_terminated or (self._orphan_until is not None and now >= self._orphan_until):
            self._is_terminated = False
            self._orphan_until = None
            self._is_leaving = True
            self._leave()

    def _on_terminate(self, _signo: int, _frame: FrameType | None) -> None:
        self._is_terminated = True

    def _leave(self) -> None:
        """End what lives, then go; called when nobody holds us, or by SIGTERM."""
        if self._ender is not None:
            return
        if not has_children():
            self._is_over = True
            return
        self._attempts += 1
        self._end_all(*self._graces())

    def _graces(self) -> tuple[float, float]:
        if self._terminal is None:
            return DEFAULT_GRACE_S, DEFAULT_SHELL_GRACE_S
        return self._terminal.grace_s, self._terminal.shell_grace_s

    # -- peers ----------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return  # it left again, or no descriptor is free: it will be tried again
        peer = Connection(sock)
        peer.until = self._clock() + HELLO_S
        self._peers[peer.fileno()] = peer
        self._poll.register(peer.fileno(), select.POLLIN)
        strangers = [other for other in self._peers.values() if not other.is_holder]
        if len(strangers) > MAX_STRANGERS:
            strangers[0].is_lost = True
        if not may_connect(sock):
            self._refuse(peer, "PEER_REFUSED", "the peer is another user")

    def _refuse(self, peer: Connection, code: str, message: str) -> None:
        peer.send({"ok": False, "error": {"code": code, "message": message}})
        peer.until = self._clock() + HELLO_S
        peer.finish()

    def _serve(self, peer: Connection, event: int) -> None:
        if event & select.POLLOUT:
            peer.flush()
        if not event & ~select.POLLOUT:
            return
        peer.receive()
        try:
            while (message := peer.next()) is not None:
                if peer is self._holder:
                    self._request(peer, message)
                else:
                    self._hello(peer, message)
        except ProtocolError as error:
            self._refuse(peer, error.code, str(error))

    def _tidy(self) -> None:
        for fd, peer in list(self._peers.items()):
            if not peer.is_lost:
                writing = select.POLLOUT if peer.wants_write else 0
                self._poll.modify(fd, writing if peer.is_closing else writing | select.POLLIN)
                continue
            self._poll.unregister(fd)
            del self._peers[fd]
            peer.close()
            if peer is self._holder:
                self._holder = None
                self._orphan_until = self._clock() + self._orphan_grace_s

    def _hello(self, peer: Connection, message: Message) -> None:
        key = protocol.check_hello(message)
        if not compare_digest(key.encode("utf-8", "replace"), self._key):
            raise ProtocolError("BAD_KEY", "the key is not this slot's")
        if self._holder is not None:
            self._holder.send({"event": "superseded"})
            self._holder.finish()
        self._holder = peer
        self._adoption += 1
        self._orphan_until = None
        self._is_leaving = False
        self._attempts = 0
        peer.prove()
        peer.send(
            {
                "ok": True,
                "v": protocol.VERSION,
                "adoption": self._adoption,
                "shim_pid": os.getpid(),
                "exit": self._exit(),
            }
        )

    # -- requests -------------------------------------------------------------------

    def _request(self, peer: Connection, message: Message) -> None:
        number = message.get("id")
        fds: list[int] = []
        try:
            reply = self._answer(peer, number, message, fds)
        except ProtocolError as error:
            reply = {"ok": False, "error": {"code": error.code, "message": str(error)}}
        except SpawnError as error:
            facts = {"code": error.code, "message": str(error), "step": error.step}
            reply = {"ok": False, "error": facts | {"errno": error.number}}
        if reply is not None:
            peer.send({"id": number} | reply, fds)

    def _answer(
        self, peer: Connection, number: object, message: Message, fds: list[int]
    ) -> Message | None:
        """Do what is asked; None means the reply comes later."""
        op = message.get("op")
        if op == "spawn":
            return self._spawn(message, fds)
        if op == "adopt":
            return self._describe(fds)
        if op == "teardown":
            graces = (
                protocol.seconds(message, "grace_s"),
                protocol.seconds(message, "shell_grace_s"),
            )
            self._waiters.append((peer, number))
            self._end_all(*graces)
            return None
        if op == "quit":
            self._quits.append((peer, number))
            if has_children() or self._ender is not None:
                self._end_all(*self._graces())
            else:
                self._quit()
            return None
        if op not in ("labels", "resize"):
            raise protocol.invalid(f"unknown request {op!r:.40}")
        if self._terminal is None:
            raise ProtocolError("NOT_SPAWNED", "nothing has been started in this shim")
        if op == "labels":
            labels = protocol.unpack(message, "labels", protocol.MAX_LABELS_BYTES)
            self._terminal.labels = labels
        else:
            self._terminal.resize(
                protocol.whole(message, "rows", 1, 65535), protocol.whole(message, "cols", 1, 65535)
            )
        return {"ok": True}

    def _spawn(self, message: Message, fds: list[int]) -> Message:
        if self._terminal is not None:
            raise ProtocolError("ALREADY_SPAWNED", "this shim has its program already")
        try:
            self._terminal = spawn(Plan(message))
        except SpawnError:
            for row in self._processes.below(os.getpid(), lambda pid, _: self._processes.row(pid)):
                os.kill(row.pid, signal.SIGKILL)  # our own unreaped child: its pid is still its
            raise
        root = self._processes.row(self._terminal.pid)  # unreaped, so it is there
        self._terminal.identity = (self._terminal.pid, root.start if root is not None else 0)
        return self._describe(fds)

    def _describe(self, fds: list[int]) -> Message:
        terminal = self._terminal
        if terminal is None:
            return {"ok": True, "pid": None}
        fds += (terminal.master_fd, terminal.log_fd)
        return {
            "ok": True,
            "pid": terminal.pid,
            "start_time": terminal.identity[1],
            "labels": protocol.pack(terminal.labels),
            "exit": self._exit(),
            "fds": ["master", "log"],
        }

    def _exit(self) -> Message | None:
        if self._ending is None:
            return None
        return {"code": self._ending.code, "signal": self._ending.signal}

    # -- ends -----------------------------------------------------------------------

    def _collect(self) -> None:
        for pid, status in reap():
            if self._ender is not None:
                self._ender.reaped(pid)
            if self._terminal is not None and self._ending is None and pid == self._terminal.pid:
                self._ending = Ending.of(status)
                if self._holder is not None:
                    self._holder.send({"event": "exit", "exit": self._exit()})
                if self._ender is None and has_children():
                    self._end_all(*self._graces())  # jobs and daemons must not outlive the shell

    def _end_all(self, grace_s: float, shell_grace_s: float) -> None:
        if self._ender is not None:
            self._ender.hurry(grace_s, shell_grace_s)
            return
        _allow_many_descriptors()
        terminal = self._terminal
        machine = Teardown(
            root=terminal.identity if terminal is not None and self._ending is None else None,
            wrappers=terminal.wrappers if terminal is not None else (),
            grace_s=grace_s,
            shell_grace_s=shell_grace_s,
        )
        self._ender_since = self._clock()
        self._ender = Ender(
            machine,
            self._processes,
            clock=self._clock,
            collect=self._collect,
            watch=lambda fd: self._poll.register(fd, select.POLLIN),
            unwatch=self._poll.unregister,
        )
        self._ender.begin()

    def _on_ended(self, ender: Ender) -> None:
        assert ender.done is not None  # noqa: S101  (called for that reason)
        self._ender = None
        ender.close()
        survivors = ender.done.survivors
        self._ended = (self._ended + ender.done.ended)[-MAX_RECEIPT:]
        receipt: Message = {
            "ok": True,
            "root_exit": self._exit(),
            "ended": [_entry(entry) for entry in self._ended],
            "survivors": [_entry(entry) for entry in survivors[:MAX_RECEIPT]],
            "elapsed_s": self._clock() - self._ender_since,
        }
        waiters, self._waiters = self._waiters, []
        for peer, number in waiters:
            peer.send({"id": number} | receipt)
        if self._quits and not survivors:
            self._quit()
        elif self._quits:
            quits, self._quits = self._quits, []
            facts = {"code": "CLEANUP_INCOMPLETE", "survivors": receipt["survivors"]}
            facts["message"] = "processes survived; the shim stays"
            for peer, number in quits:
                peer.send({"id": number, "ok": False, "error": facts})
        elif self._is_leaving and (not survivors or self._attempts >= LEAVE_ATTEMPTS):
            self._is_over = True  # what survives has SIGKILL pending and cannot fork any more
        elif self._is_leaving:
            self._orphan_until = self._clock() + RETRY_S

    def _quit(self) -> None:
        for peer, number in self._quits:
            peer.send({"id": number, "ok": True})
        self._is_over = True


def _entry(entry: Ended) -> Message:
    last = None if entry.signo is None else signal_name(entry.signo)
    return {"pid": entry.pid, "name": entry.name, "signal": last}


def _note(_signo: int, _frame: FrameType | None) -> None:
    """Do nothing; the wake-up descriptor has ended the poll."""


def _allow_many_descriptors() -> None:
    """One pidfd a process; raised only now, since what is spawned would inherit it."""
    import resource

    try:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return
