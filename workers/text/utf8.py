"""Counting and cutting text by its UTF-8 size.

Every bound of this room is in bytes, every value in characters. A cut never divides a
code point: what does not fit whole is left out, so a result may be up to three bytes
below its bound.
"""


def byte_length(text: str) -> int:
    """Count the UTF-8 bytes of ``text``."""
    return len(text) if text.isascii() else len(text.encode())


def newest(text: str, max_bytes: int) -> str:
    """Keep the end of ``text`` in at most ``max_bytes`` bytes."""
    if max_bytes <= 0:
        return ""
    end = text[-max_bytes:]  # a character has at least one byte
    if end.isascii():
        return end
    return end.encode()[-max_bytes:].decode(errors="ignore")


def oldest(text: str, max_bytes: int) -> str:
    """Keep the beginning of ``text`` in at most ``max_bytes`` bytes."""
    if max_bytes <= 0:
        return ""
    begin = text[:max_bytes]
    if begin.isascii():
        return begin
    return begin.encode()[:max_bytes].decode(errors="ignore")
