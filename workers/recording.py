"""A terminal's output as an asciicast (version 2), for whoever keeps transcripts.

One file for each worker a session has had: a worker that takes a shell over begins a new
one. Typed text is not recorded; what the terminal echoes of it is output like any other,
and a password is not echoed. Values of credentials, of this process's environment and among
the variables the caller handed over, are replaced. The times are seconds since the file
began; a sequence that is cut in the middle of a character or of a secret waits for its rest.
"""

import codecs
import json
import os

from fabric.core.clock import Clock
from fabric.core.model import OpenSpec
from fabric.core.redact import Redactor, secrets_of
from fabric.core.settings import TranscriptSettings
from fabric.core.transcripts import TranscriptFile

OUTPUT, RESIZE = "o", "r"


class Recording:
    """The record of one session by one worker."""

    def __init__(self, settings: TranscriptSettings, spec: OpenSpec, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._redactor = Redactor(secrets_of(os.environ) | secrets_of(dict(spec.env)))
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._file = TranscriptFile(settings, spec.owner_id, f"{spec.session_id}.cast")
        header = {
            "version": 2,
            "width": spec.cols,
            "height": spec.rows,
            "timestamp": int(clock.wall()),
            "title": f"{spec.type} {spec.session_id}",
            "env": {"TERM": spec.term},
        }
        self._file.write(json.dumps(header).encode() + b"\n")

    @classmethod
    def begun(
        cls, settings: TranscriptSettings, spec: OpenSpec, clock: Clock
    ) -> "Recording | None":
        """Begin a record, or None where none is wanted."""
        return cls(settings, spec, clock) if settings.dir else None

    def output(self, data: bytes) -> None:
        """Record output."""
        if self._file.is_open:
            self._event(OUTPUT, self._decoder.decode(self._redactor.feed(data)))

    def resized(self, rows: int, cols: int) -> None:
        """Record a new size."""
        if self._file.is_open:
            self._event(RESIZE, f"{cols}x{rows}")

    def close(self) -> None:
        """End the record. May be repeated."""
        if self._file.is_open:
            self._event(OUTPUT, self._decoder.decode(self._redactor.flush(), final=True))
            self._file.close()

    def _event(self, kind: str, text: str) -> None:
        if text:
            at = round(self._clock.monotonic() - self._began, 6)
            row = json.dumps([at, kind, text], ensure_ascii=False)
            self._file.write(row.encode("utf-8", "replace") + b"\n")
