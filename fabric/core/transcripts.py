"""Files of transcripts: who may read them, how long they grow, how long they stay.

Below the folder of the setting ``worker.transcript.dir`` every owner has a folder of its
own (0700) with files (0600) that nobody else's name can lead into. A file grows to a bound;
a folder keeps its files for a time and the whole of them to a size, the oldest going first.
Recording never hurts what is recorded: a file that cannot be written any more ends.
"""

import contextlib
import logging
import os
import time
from pathlib import Path

from fabric.core.settings import TranscriptSettings

_log = logging.getLogger(__name__)
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class TranscriptFile:
    """One file that grows to ``max_file_bytes`` and then takes no more."""

    def __init__(self, settings: TranscriptSettings, owner_id: str, name: str) -> None:
        self.is_full = False
        self._left = settings.max_file_bytes
        self._fd = -1
        try:
            folder = _private(Path(settings.dir).expanduser())
            self._fd = _fresh(_private(folder / owner_id), name)
        except OSError as error:
            _log.warning("transcript not begun", extra={"errno": error.errno})

    @property
    def is_open(self) -> bool:
        """Tell whether anything more will be written."""
        return self._fd >= 0

    def write(self, line: bytes) -> None:
        """Append a line whole, or end the file: it is full, or the disk is."""
        if self._fd < 0:
            return
        if len(line) > self._left:
            self.is_full = True
            self.close()
            return
        self._left -= len(line)
        try:
            view = memoryview(line)
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            _log.warning("transcript ended", extra={"errno": error.errno})
            self.close()

    def close(self) -> None:
        """End the file. May be repeated."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _private(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = folder.lstat()
    if facts.st_uid != os.geteuid() or not folder.is_dir() or folder.is_symlink():
        raise PermissionError(1, "not a folder of ours")
    if facts.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def _fresh(folder: Path, name: str) -> int:
    """Open a file that was not there; a number tells later ones of a name apart."""
    stem, dot, suffix = name.rpartition(".")
    for number in range(1000):
        chosen = name if number == 0 else f"{stem}.{number}{dot}{suffix}"
        with contextlib.suppress(FileExistsError):
            return os.open(folder / chosen, _FLAGS, 0o600)
    raise FileExistsError(17, "too many files of one name")


def sweep(settings: TranscriptSettings, now: float | None = None) -> int:
    """Remove what is older than the retention, and the oldest beyond the size; count them."""
    now = time.time() if now is None else now
    root = Path(settings.dir).expanduser()
    found = []
    for path in root.glob("*/*"):
        with contextlib.suppress(OSError):
            facts = path.lstat()
            found.append((facts.st_mtime, facts.st_size, path))
    kept_bytes = removed = 0
    for mtime, size, path in sorted(found, reverse=True, key=lambda row: row[0]):
        kept_bytes += size
        if now - mtime > settings.retention_s or kept_bytes > settings.max_total_bytes:
            with contextlib.suppress(OSError):
                path.unlink()
                removed += 1
    for folder in root.glob("*"):
        with contextlib.suppress(OSError):  # a folder that still holds something stays
            if now - folder.lstat().st_mtime > settings.retention_s:
                folder.rmdir()
    return removed
