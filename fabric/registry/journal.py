"""The registry's memory on disk: a SQLite file in write-ahead mode.

One table a kind, ``key`` to JSON ``body``; one transaction a stimulus. ``synchronous`` is
NORMAL: a killed process loses nothing, a power cut may lose the last moments, and neither
leaves a file that cannot be read. The file is locked for as long as it is open, so a
registry that was declared dead and still runs cannot write beside its successor.

Bodies hold no terminal text but the bounded output of settled tasks, no environment and
no typed text; the signing keys are among the facts, so the file is 0600.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fabric.core.errors import InternalError, RegistryUnavailableError
from fabric.registry.instructions import Change, Kind, Put

VERSION = 1
APPLICATION_ID = 0x70747966  # "ptyf": tells our file from any other database
BUSY_TIMEOUT_S = 5.0  # a predecessor that was just killed may hold the lock for a moment

Rows = dict[Kind, dict[str, dict[str, Any]]]


class Journal:
    """An open journal. Not for use from several threads."""

    def __init__(self, path: Path) -> None:
        """Open or create the journal. Raises: InternalError."""
        self.path = path
        self._db = self._open(path)

    def apply(self, changes: Iterable[Change]) -> None:
        """Write the changes in one transaction. Raises: RegistryUnavailableError."""
        try:
            self._db.execute("BEGIN")
            for change in changes:
                if isinstance(change, Put):
                    body = json.dumps(change.body, separators=(",", ":"))
                    self._db.execute(_UPSERT[change.kind], (change.key, body))
                else:
                    self._db.execute(_DELETE[change.kind], (change.key,))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise RegistryUnavailableError(
                f"the registry cannot write its journal {self.path}: {error}"
            ) from error

    def load(self) -> Rows:
        """Read everything, each kind in the order of its keys. Raises: InternalError."""
        rows: Rows = {}
        try:
            for kind in Kind:
                found = self._db.execute(f"SELECT key, body FROM {kind.value} ORDER BY key")  # noqa: S608  (our own names)
                rows[kind] = {key: json.loads(body) for key, body in found}
        except (sqlite3.Error, ValueError) as error:
            raise self._damaged(str(error)) from error
        return rows

    def compact(self) -> None:
        """Fold the write-ahead file in and give free pages back."""
        with contextlib.suppress(sqlite3.Error):
            # A script: ``execute`` stops after the first freed page.
            self._db.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);")

    def close(self) -> None:
        """Compact and close; may be called twice."""
        self.compact()
        self._db.close()

    def _open(self, path: Path) -> sqlite3.Connection:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise InternalError(
                f"the journal {path} cannot be opened: {error.strerror}; give the service a state"
                " folder it may write"
            ) from error
        db = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(db)
        except sqlite3.OperationalError as error:
            db.close()
            if "locked" in str(error):
                raise InternalError(
                    f"the journal {path} is in use by another registry; end that one first"
                ) from error
            raise self._damaged(str(error)) from error
        except sqlite3.DatabaseError as error:
            db.close()
            raise self._damaged(str(error)) from error
        except InternalError:
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        blank = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if blank and version == 0:
            db.execute("PRAGMA auto_vacuum=INCREMENTAL")
        else:
            self._check(db, version)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("BEGIN IMMEDIATE")
        for kind in Kind:
            db.execute(
                f"CREATE TABLE IF NOT EXISTS {kind.value}"
                " (key TEXT PRIMARY KEY, body TEXT NOT NULL)"
            )
        db.execute(f"PRAGMA user_version={VERSION}")
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.execute("COMMIT")

    def _check(self, db: sqlite3.Connection, version: int) -> None:
        if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise InternalError(f"{self.path} is a database, but not a journal of this service")
        if version > VERSION:
            raise InternalError(
                f"the journal {self.path} is of version {version}, this registry knows {VERSION};"
                " run the newer release, or move the file away and lose the owners"
            )
        verdict = db.execute("PRAGMA quick_check").fetchone()[0]
        if verdict != "ok":
            raise self._damaged(str(verdict))

    def _damaged(self, what: str) -> InternalError:
        return InternalError(
            f"the journal {self.path} is damaged ({what.splitlines()[0] if what else 'unknown'});"
            " restore it from a copy, or move it away: sessions that still run are then adopted"
            " from their nodes, and owners must acquire again"
        )


_UPSERT = {
    kind: f"INSERT OR REPLACE INTO {kind.value} VALUES (?, ?)"  # noqa: S608  (our own names)
    for kind in Kind
}
_DELETE = {kind: f"DELETE FROM {kind.value} WHERE key=?" for kind in Kind}  # noqa: S608  (our own names)
