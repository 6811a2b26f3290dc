"""What ``fabric doctor`` makes of the facts it was given.

Theory. A finding is one checked thing: its verdict, the fact it rests on, and, unless all is
well, why that matters and what to do. ``fail`` means that something this fabric promises does
not work here; ``warn``, that it works less well or not for long; what cannot be told is a
``warn`` too, since silence would read as health. Judging is apart from looking, so every
verdict is tested with values: the functions here take facts and touch nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

GIB = 1 << 30
DAY_S = 86_400.0
# An idle worker has some 25 threads, its shim and shell a process each.
THREADS_PER_SESSION = 32
MEMORY_PER_SESSION_BYTES = 57_000_000
# What a gateway or node holds for one session: channel, PTY, log, and a caller's connection.
FDS_PER_SESSION = 8
SPARE_FDS = 1024
SPARE_THREADS = 512
LOW_TMP_BYTES, LEAST_TMP_BYTES = GIB, 128 << 20
CERT_SOON_S = 14 * DAY_S
# A signed token counts from the second it was made; a minute makes fresh ones fail.
SKEW_S, MOST_SKEW_S = 2.0, 30.0
SLOW_TURN_S, SLOW_OPEN_S = 0.5, 5.0


class Verdict(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked thing; ``why`` and ``remedy`` are empty when all is well."""

    check: str
    verdict: Verdict
    fact: str
    why: str = ""
    remedy: str = ""


def ok(check: str, fact: str) -> Finding:
    """All is well."""
    return Finding(check, Verdict.OK, fact)


def warn(check: str, fact: str, why: str, remedy: str) -> Finding:
    """It works less well, or not for long, or nobody can tell."""
    return Finding(check, Verdict.WARN, fact, why, remedy)


def fail(check: str, fact: str, why: str, remedy: str) -> Finding:
    """It does not work here."""
    return Finding(check, Verdict.FAIL, fact, why, remedy)


def worst(findings: Iterable[Finding]) -> Verdict:
    """Return the gravest verdict of all."""
    order = list(Verdict)
    return max((item.verdict for item in findings), key=order.index, default=Verdict.OK)


def python(version: tuple[int, int, int]) -> Finding:
    """Judge the interpreter."""
    text = ".".join(str(part) for part in version)
    if version >= (3, 11, 0):
        return ok("python", text)
    return fail(
        "python", text, "the code needs 3.11; Ray also wants the same minor version on every node",
        "make the environment with a newer Python: make env PYTHON=/path/to/python3.11",
    )  # fmt: skip


def ray(version: str | None, wanted: str) -> Finding:
    """Judge the Ray that is installed here; ``wanted`` is its minor version, such as 2.60."""
    if version is None:
        return fail(
            "ray", "not installed", "nodes and gateways are Ray processes",
            "pip install the environment anew from requirements.lock",
        )  # fmt: skip
    if version.split(".")[:2] == wanted.split(".")[:2]:
        return ok("ray", version)
    return fail(
        "ray", f"{version}, not {wanted}.x",
        "nodes start through parts of Ray that change between minor versions, and Ray refuses"
        " nodes of another version",
        f"pip install 'ray=={wanted}.*' on every machine",
    )  # fmt: skip


def sandbox(kinds: Sequence[str], failure: str) -> Finding:
    """Judge what the functional trial of every sandbox has shown."""
    fact = ", ".join(kinds) or f"none ({failure})"
    confined = {"bubblewrap", "landlock", "seatbelt"} & set(kinds)
    if not confined:
        return fail(
            "sandbox", fact,
            "read-only and workspace-write sessions are refused here; only full access works",
            "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1 or, on Ubuntu,"
            " kernel.apparmor_restrict_unprivileged_userns=0), or a kernel with Landlock",
        )  # fmt: skip
    if confined == {"landlock"}:
        return warn(
            "sandbox", f"{fact} ({failure})" if failure else fact,
            "Landlock confines files, but leaves processes and mounts of others in view",
            "allow user namespaces, so that bubblewrap works",
        )  # fmt: skip
    return ok("sandbox", fact)


def exact_tier(seen: bool, yama: int | None, hidepid: str, *, linux: bool = True) -> Finding:
    """Judge the trial of the exact tier: was another process's wait seen in /proc?"""
    name = "exact readiness"
    settings = f"ptrace_scope {'-' if yama is None else yama}, hidepid {hidepid or '-'}"
    if not linux:
        return warn(
            name, "not on this system", "only the shell's own prompt is exact here",
            "nothing; REPLs are judged by termios and silence",
        )  # fmt: skip
    if seen:
        return ok(name, f"a foreign process's wait is visible ({settings})")
    why = "whether a REPL or debugger wants input is then a guess after 3 s of silence"
    if yama:
        remedy = "sysctl kernel.yama.ptrace_scope=0, or give the node's service CAP_SYS_PTRACE"
    elif hidepid not in ("", "0", "off"):
        remedy = "remount /proc with hidepid=0 for the service, or add it to /proc's gid= group"
    else:
        remedy = "let the service read /proc/PID/syscall: CAP_SYS_PTRACE, no seccomp filter"
    return warn(name, f"a foreign process's wait cannot be seen ({settings})", why, remedy)


def terminals(free: int, sessions: int, least: int) -> Finding:
    """Judge the pseudo-terminals that are left (-1: not known)."""
    remedy = "sysctl kernel.pty.max=8192, and end what holds terminals (ls /dev/pts)"
    if free < 0:
        return warn("terminals", "not known", "opens are refused when they run out", remedy)
    fact = f"{free} free"
    if free < least:
        return fail("terminals", fact, f"opens are refused below {least}", remedy)
    if free < sessions + least:
        why = f"not enough for node.max_sessions = {sessions}"
        return warn("terminals", fact, why, remedy)
    return ok("terminals", fact)


def descriptors(soft: int | None, sessions: int, least: int) -> Finding:
    """Judge the limit on open files (None: none)."""
    if soft is None:
        return ok("open files", "no limit")
    wanted = SPARE_FDS + FDS_PER_SESSION * sessions
    remedy = f"ulimit -n {max(wanted, 65536)}, or LimitNOFILE= in the unit"
    if soft < 2 * least:
        return fail("open files", str(soft), f"opens are refused below {least} free", remedy)
    if soft < wanted:
        why = f"a node of {sessions} sessions with their callers needs some {wanted}"
        return warn("open files", str(soft), why, remedy)
    return ok("open files", str(soft))


def processes(limit: int | None, source: str, sessions: int) -> Finding:
    """Judge the tightest limit on processes and threads (None: none)."""
    if limit is None:
        return ok("processes", "no limit")
    wanted = SPARE_THREADS + THREADS_PER_SESSION * sessions
    fact = f"{limit} ({source})"
    if limit >= wanted:
        return ok("processes", fact)
    return warn(
        "processes", fact,
        f"{sessions} sessions have some {wanted} threads before anything runs in them;"
        " beyond it fork fails in the middle of a session",
        "ulimit -u unlimited, TasksMax=infinity in the unit, or fewer node.max_sessions",
    )  # fmt: skip


def memory(free: int, sessions: int, least: int) -> Finding:
    """Judge the memory that is left, in bytes (-1: not known)."""
    remedy = "fewer node.max_sessions, or more memory"
    if free < 0:
        return warn("memory", "not known", "opens are refused when it runs out", remedy)
    fact = f"{free / GIB:.1f} GiB free"
    if free < least:
        return fail("memory", fact, f"opens are refused below {least / GIB:.2f} GiB", remedy)
    wanted = sessions * MEMORY_PER_SESSION_BYTES
    if free < wanted:
        why = f"{sessions} idle sessions alone take {wanted / GIB:.1f} GiB"
        return warn("memory", fact, why, remedy)
    return ok("memory", fact)


def room(folder: str, free: int | None, problem: str = "") -> Finding:
    """Judge a folder that must be writable and have space, in bytes (None: not usable)."""
    name = f"space in {folder}"
    why = "journal, sockets, Ray's files and logs go there; a full disk refuses every open"
    if free is None:
        remedy = "make it writable for this user, or choose another (FABRIC_STATE_DIR, TMPDIR)"
        return fail(name, problem or "not writable", why, remedy)
    fact = f"{free / GIB:.1f} GiB free"
    if free < LEAST_TMP_BYTES:
        return fail(name, fact, why, "make room there")
    if free < LOW_TMP_BYTES:
        return warn(name, fact, why, "make room there")
    return ok(name, fact)


def priority(niceness: int, oom: int | None) -> Finding:
    """Judge what shells would inherit."""
    fact = f"nice {niceness}, oom_score_adj {'-' if oom is None else oom}"
    if niceness <= 0 and (oom or 0) <= 0:
        return ok("priority", fact)
    return warn(
        "priority", fact, "every session inherits it: slower, or the first to be killed",
        "start the service without nice and with OOMScoreAdjust=0",
    )  # fmt: skip


def private_file(what: str, path: str, mode: int | None, own: bool, problem: str) -> Finding:
    """Judge a file with a secret: readable by its owner only, and usable (``problem`` empty)."""
    check = f"{what} {path}"
    if mode is None or problem:
        why = "the gateway does not start, or lets nobody in"
        return fail(
            check, problem or "not there", why, "fabric token create --help; or mend the path"
        )
    why = "whoever reads it can act as every caller, or run code on every node"
    remedy = f"chown it to the service and chmod 600 {path}"
    if mode & 0o027 or not own:
        fact = f"mode {mode:04o}{'' if own else ', of another user'}"
        return fail(check, fact, why, remedy)
    if mode & 0o040:
        return warn(check, f"mode {mode:04o}, readable by its group", why, remedy)
    return ok(check, f"mode {mode:04o}")


def certificate(what: str, path: str, left_s: float | None, problem: str) -> Finding:
    """Judge a certificate by the seconds it still counts."""
    check = f"{what} {path}"
    if left_s is None:
        why = "no TLS: callers and the other gateways cannot connect"
        return fail(check, problem, why, "fabric tls dev-ca makes one; or mend the path")
    fact = f"counts for {left_s / DAY_S:.0f} days" if left_s > 0 else "has expired"
    remedy = "renew it; a gateway reads certificates when it starts: restart it afterwards"
    if left_s <= 0:
        return fail(check, fact, "callers refuse to connect", remedy)
    if left_s < CERT_SOON_S:
        return warn(check, fact, "callers refuse to connect from then on", remedy)
    return ok(check, fact)


def clock_sync(synchronised: bool | None) -> Finding:
    """Judge whether the kernel says that its clock follows a reference (None: not known)."""
    if synchronised:
        return ok("clock", "the kernel follows a reference")
    fact = "not known" if synchronised is None else "the kernel follows no reference"
    return warn(
        "clock", fact, "owner and bearer tokens carry times; machines minutes apart refuse them",
        "run chrony or systemd-timesyncd; in a container, on the host",
    )  # fmt: skip


def skew(host: str, offset_s: float, doubt_s: float) -> Finding:
    """Judge how far a node's clock is from this one; ``doubt_s`` is the half of the round trip."""
    check, fact = f"clock of {host}", f"{offset_s:+.2f} s (±{doubt_s:.2f} s)"
    apart = max(0.0, abs(offset_s) - doubt_s)
    if apart <= SKEW_S:
        return ok(check, fact)
    why = "owner and bearer tokens made on one machine are refused on the other"
    remedy = f"run chrony or systemd-timesyncd on {host} and here"
    return (fail if apart > MOST_SKEW_S else warn)(check, fact, why, remedy)


def same(host: str, theirs: tuple[str, str, str], ours: tuple[str, str, str]) -> Finding:
    """Judge a node's versions of pty-fabric, Ray and Python against ours."""
    check = f"versions of {host}"
    fact = "pty-fabric {}, ray {}, python {}".format(*theirs)
    minor = [text.rpartition(".")[0] for text in (theirs[2], ours[2])]
    if theirs[:2] == ours[:2] and minor[0] == minor[1]:
        return ok(check, fact)
    why = "here it is {}, {} and {}; mixed versions are for the length of an upgrade only".format(
        *ours
    )
    verdict = warn if theirs[1] == ours[1] and minor[0] == minor[1] else fail
    return verdict(check, fact, why, "install the same everywhere, then fabric upgrade")


def turn(open_s: float, echo_s: float, close_s: float) -> Finding:
    """Judge the time of a real session."""
    fact = f"open {open_s * 1e3:.0f} ms, echo {echo_s * 1e3:.1f} ms, close {close_s * 1e3:.0f} ms"
    if echo_s <= SLOW_TURN_S and open_s <= SLOW_OPEN_S:
        return ok("a session", fact)
    return warn(
        "a session", fact, "a warm open takes some 25 ms and an echo 2 ms on an idle machine",
        "fabric nodes: no warm slots left? top: is the machine busy? a far gateway?",
    )  # fmt: skip
