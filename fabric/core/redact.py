"""Take secrets out of text and of streams of bytes.

A value is secret when the name it stands under looks like a credential, in this process's
environment or among what a caller hands over. A stream is cut anywhere, so its end is held
back while it might be the beginning of a secret; what is held back is never longer than the
longest secret. What is shorter than ``MIN_SECRET_CHARS`` is left alone: hiding every ``1``
or ``on`` would hide the text.
"""

import re
from collections.abc import Iterable, Mapping

CREDENTIAL_WORDS = ("KEY", "SECRET", "TOKEN", "PASSWORD", "PASSWD", "CREDENTIAL")
MIN_SECRET_CHARS = 6
HIDDEN = "***"


def names_a_secret(name: str) -> bool:
    """Tell whether the name of a variable looks like a credential."""
    upper = name.upper()
    return any(word in upper for word in CREDENTIAL_WORDS)


def secrets_of(variables: Mapping[str, str]) -> frozenset[str]:
    """Collect the values of variables whose names look like credentials."""
    return frozenset(
        value
        for name, value in variables.items()
        if names_a_secret(name) and len(value) >= MIN_SECRET_CHARS
    )


class Redactor:
    """Replaces secrets by ``***``."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {secret for secret in secrets if len(secret) >= MIN_SECRET_CHARS}
        ordered = sorted(found, key=len, reverse=True)  # the longest wins where one holds another
        self._text = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        self._raw = [secret.encode("utf-8", "surrogateescape") for secret in ordered]
        self._bytes = re.compile(b"|".join(map(re.escape, self._raw))) if ordered else None
        self._rest = b""

    def text(self, text: str) -> str:
        """Return a whole text without its secrets."""
        return text if self._text is None else self._text.sub(HIDDEN, text)

    def feed(self, data: bytes) -> bytes:
        """Return what is safe of a stream so far."""
        if self._bytes is None:
            return data
        whole = self._bytes.sub(HIDDEN.encode(), self._rest + data)
        held = max((_overlap(whole, secret) for secret in self._raw), default=0)
        self._rest = whole[len(whole) - held :]
        return whole[: len(whole) - held]

    def flush(self) -> bytes:
        """Return what was held back; the stream has ended."""
        rest, self._rest = self._rest, b""
        return rest


def _overlap(data: bytes, secret: bytes) -> int:
    """Measure the longest end of ``data`` that is a beginning of ``secret``, but not all of it."""
    first = secret[0]
    for length in range(min(len(data), len(secret) - 1), 0, -1):
        if data[-length] == first and secret.startswith(data[-length:]):
            return length
    return 0
