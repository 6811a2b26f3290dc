"""Record the terminal streams in ``streams/``: run by hand, needs vim, less, top, tmux.

    python tests/unit/text/record_streams.py [name ...]

Each program runs on a PTY of 24 rows and 80 columns with TERM=xterm-256color in a scratch
folder; the keys are typed one after the other with a pause. What it printed is the record.
"""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

HERE = Path(__file__).parent / "streams"
NUMBERS = "".join(f"number {n} " + "abc " * (n % 17) + "\n" for n in range(300))
PROGRAMS: dict[str, tuple[list[str], list[bytes]]] = {
    "vim": (
        ["vim", "-u", "NONE", "-N", "numbers.txt"],
        [
            b"\x06",
            b"/number 77\r",
            b"ihello w\xc3\xb6rld\x1b",
            b"dd",
            b"p",
            b"G",
            b"\x15",
            b":vsplit\r",
        ],
    ),
    "vim_left": (
        ["bash", "--norc", "--noprofile", "-i"],
        [
            b"echo before\r",
            b"vim -u NONE -N numbers.txt\r",
            b"",
            b"",
            b"G",
            b"",
            b":q!\r",
            b"",
            b"echo after\r",
        ],
    ),
    "less": (["less", "numbers.txt"], [b" ", b" ", b"/number 123\r", b"b", b"k", b"k", b"G"]),
    "top": (["top", "-d", "1.5", "-p", "{pid}"], [b"", b"", b"", b"1", b"c"]),
    "tmux": (
        ["tmux", "-L", "record", "-f", "/dev/null", "new-session", "bash --norc --noprofile"],
        [
            b"tmux -L record set -g status-right ''\r",
            b"clear\r",
            b"head -40 numbers.txt\r",
            b"\x02%",
            b"echo right pane\r",
            b'\x02"',
            b"head -30 numbers.txt\r",
        ],
    ),
    "python": (
        [sys.executable, "-q"],
        [
            b"print('x' * 200)\r",
            b"for i in range(40): print(i, end='\\r\\n')\r\r",
            b"1/0\r",
            b"\x1b[A",
        ],
    ),
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        [
            b"ls --color=always -l /usr\r",
            b"echo " + b"abcdefgh " * 14,
            b"\x01",
            b"\x1b[C" * 3,
            b"XY",
            b"\x05",
            b"\x17",
            b"\r",
            b"printf 'a\\tb\\n'\r",
            b"clear\r",
            b"seq 30\r",
        ],
    ),
    "progress": (
        [
            "bash",
            "-c",
            "for i in $(seq 0 5 100); do printf '\\r\\033[K%3d%% [%-20s]' $i "
            "$(printf '%*s' $((i/5)) '' | tr ' ' '#'); sleep 0.01; done; echo; "
            "for i in $(seq 5); do printf 'a%d\\nb%d\\n\\033[2A' $i $i; done; "
            "printf '\\033[2Bend\\n'",
        ],
        [b""],
    ),
}


def record(argv: list[str], keys: list[bytes]) -> bytes:
    """Run a program, type, and return what it printed."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.clear()
        os.environ.update(TERM="xterm-256color", PATH="/usr/bin:/bin", LC_ALL="C.UTF-8", PS1="$ ")
        os.execvp(argv[0], [part.replace("{pid}", str(os.getpid())) for part in argv])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    out = bytearray()

    def drain(quiet_s: float) -> None:
        until = time.monotonic() + 8
        while time.monotonic() < until and select.select([fd], [], [], quiet_s)[0]:
            try:
                data = os.read(fd, 65536)
            except OSError:
                return
            if not data:
                return
            out.extend(data)

    drain(1.5)
    for key in keys:
        with contextlib.suppress(OSError):
            os.write(fd, key)
        drain(1.0)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    os.close(fd)
    os.waitpid(pid, 0)
    return bytes(out)


def main(names: list[str]) -> None:
    """Record the named streams, or all."""
    HERE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("numbers.txt").write_text(NUMBERS)
        for name in names or list(PROGRAMS):
            data = record(*PROGRAMS[name])
            (HERE / f"{name}.bin").write_bytes(data)
            sys.stderr.write(f"{name}: {len(data)} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
