"""Build the system call filters of confined sessions, as classic BPF programs.

A filter closes what mounts and Landlock leave open. Every confined session loses the kernel's
keyrings (they are shared by uid, not by namespace) and faked terminal input (``TIOCSTI``).
Landlock knows neither file modes, owners, times and extended attributes, nor connections to
unix sockets by path, nor UDP: where Landlock is all there is, a read-only session is refused
those calls as a whole, and ``network: none`` refuses every socket but unix ones. Refusing is
by errno, never by killing, so that a program can say what happened to it.

Theory of the program: load the architecture, jump to its section, compare the call's number
with each rule; a rule may also compare the low half of one argument. What no rule names is
allowed. An architecture that is not listed is killed, since its numbers mean other calls.

Pure: a value in, bytes out.
"""

import errno
import struct
from dataclasses import dataclass

_LOAD, _JUMP, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_X32 = 0x40000000

TIOCSTI = 0x5412
FS_IOC_SETFLAGS = 0x40086602
FS_IOC_FSSETXATTR = 0x401C5820
AF_UNIX = 1

_METADATA = (
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat",
    "utime", "utimes", "utimensat", "futimesat", "setxattr", "lsetxattr", "fsetxattr",
    "removexattr", "lremovexattr", "fremovexattr", "setxattrat", "removexattrat",
    "file_setattr",
)  # fmt: skip
_KEYRINGS = ("keyctl", "add_key", "request_key")
# io_uring does the same work without passing the filter.
_RINGS = ("io_uring_setup", "io_uring_enter", "io_uring_register")
_SHARED_MEMORY = ("shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgctl", "semget", "semctl")

# (call, argument, the one value that names nobody else): without a PID namespace these reach any
# process of the same uid, and a CPU limit of one second is as good as a kill.
_OTHERS = (("prlimit64", 0, 0), ("setpriority", 0, 0), ("setpriority", 1, 0))

_NEW = {  # numbers given out since 5.1 are the same everywhere
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "file_setattr": 469,
}  # fmt: skip
_X86_64 = _NEW | {
    "ioctl": 16, "socket": 41, "chmod": 90, "fchmod": 91, "fchmodat": 268, "chown": 92,
    "fchown": 93, "lchown": 94, "fchownat": 260, "utime": 132, "utimes": 235, "utimensat": 280,
    "futimesat": 261, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197,
    "lremovexattr": 198, "fremovexattr": 199, "keyctl": 250, "add_key": 248, "request_key": 249,
    "shmget": 29, "shmat": 30, "shmctl": 31, "msgget": 68, "msgsnd": 69, "msgctl": 71,
    "semget": 64, "semctl": 66, "prlimit64": 302, "setpriority": 141,
}  # fmt: skip
_AARCH64 = _NEW | {
    "ioctl": 29, "socket": 198, "fchmod": 52, "fchmodat": 53, "fchown": 55, "fchownat": 54,
    "utimensat": 88, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14,
    "lremovexattr": 15, "fremovexattr": 16, "keyctl": 219, "add_key": 217, "request_key": 218,
    "shmget": 194, "shmat": 196, "shmctl": 195, "msgget": 186, "msgsnd": 189, "msgctl": 187,
    "semget": 190, "semctl": 191, "prlimit64": 261, "setpriority": 140,
}  # fmt: skip
_I386 = {"ioctl": 54, "keyctl": 288, "add_key": 286, "request_key": 287}
_ARM = {"ioctl": 54, "keyctl": 311, "add_key": 309, "request_key": 310}

_AUDIT = {"x86_64": 0xC000003E, "i386": 0x40000003, "aarch64": 0xC00000B7, "arm": 0x40000028}
_TABLES = {"x86_64": _X86_64, "i386": _I386, "aarch64": _AARCH64, "arm": _ARM}
_COMPANION = {"x86_64": "i386", "aarch64": "arm"}


@dataclass(frozen=True, slots=True)
class Rule:
    """Refuse a call with an errno: always, or when an argument is, or is not, a value."""

    call: str
    error: int
    argument: int | None = None
    value: int = 0
    unless: bool = False


def is_supported(machine: str) -> bool:
    """Tell whether filters can be built for this ``platform.machine()``."""
    return machine in _COMPANION


def keyctl_number(machine: str) -> int | None:
    """Name the number of ``keyctl`` on this machine, None where it is not known."""
    return _TABLES[machine]["keyctl"] if is_supported(machine) else None


def common_rules() -> tuple[Rule, ...]:
    """List what every confined session is refused."""
    return (
        *(Rule(call, errno.EPERM) for call in _KEYRINGS),
        Rule("ioctl", errno.EPERM, argument=1, value=TIOCSTI),
    )


def landlock_rules(*, read_only: bool, network: bool) -> tuple[Rule, ...]:
    """List what a session without namespaces is refused besides."""
    rules = [Rule(call, errno.EPERM) for call in _RINGS]
    for call, argument, nobody in _OTHERS:
        rules.append(Rule(call, errno.EPERM, argument=argument, value=nobody, unless=True))
    if read_only:
        rules += [Rule(call, errno.EROFS) for call in _METADATA]
        for request in (FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR):
            rules.append(Rule("ioctl", errno.EROFS, argument=1, value=request))
        rules += [Rule(call, errno.EPERM) for call in _SHARED_MEMORY]
        rules.append(Rule("socket", errno.EACCES, argument=0, value=AF_UNIX))
    if not network:
        rules.append(Rule("socket", errno.EACCES, argument=0, value=AF_UNIX, unless=True))
    return tuple(rules)


def program(machine: str, rules: tuple[Rule, ...], *, companion: bool) -> bytes:
    """Build the program for a machine and, with ``companion``, its 32-bit programs.

    The 32-bit tables hold only the calls of ``common_rules``; without ``companion`` 32-bit
    programs are killed at their first call.
    """
    names = (machine, _COMPANION[machine]) if companion else (machine,)
    out = _op(_LOAD, _ARCHITECTURE)
    for name in names:
        section = _section(name, rules)
        out += _op(_EQUAL, _AUDIT[name], true=1) + _op(_JUMP, len(section) // 8) + section
    return out + _op(_RETURN, _KILL)


def _section(name: str, rules: tuple[Rule, ...]) -> bytes:
    table = _TABLES[name]
    out = _op(_LOAD, _NUMBER)
    if name == "x86_64":  # the same machine's second set of numbers, with other meanings
        out += _op(_AT_LEAST, _X32, false=1) + _op(_RETURN, _ERRNO | errno.ENOSYS)
    for rule in rules:
        number = table.get(rule.call)
        if number is None:
            continue  # this architecture never had the call
        refuse = _op(_RETURN, _ERRNO | rule.error)
        if rule.argument is None:
            out += _op(_EQUAL, number, false=1) + refuse
            continue
        compare = _op(_EQUAL, rule.value, true=1) if rule.unless else _op(_EQUAL, rule.value, 0, 1)
        test = _op(_LOAD, _ARGUMENTS + 8 * rule.argument) + compare + refuse + _op(_LOAD, _NUMBER)
        out += _op(_EQUAL, number, false=len(test) // 8) + test
    return out + _op(_RETURN, _ALLOW)


def _op(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, true, false, value)
