"""Cuts of text to a number of UTF-8 bytes, never inside a code point.

Two shapes. *Reserved*: metadata and the truncation mark keep their room and the body
gives way; short bodies keep their newest bytes, long ones head and tail around a line
that says how much is missing. *Head*: acknowledgements and errors keep their beginning,
because that is where the id stands.
"""

TRUNCATED = "[output truncated]"
RESULT_TRUNCATED = "[result truncated]"
HEAD_TAIL_FROM_BYTES = 2048
_HEAD_SHARE = 4


def size(text: str) -> int:
    """Count the UTF-8 bytes of a text; a lone surrogate counts as its replacement."""
    return len(text.encode("utf-8", "replace"))


def keep_tail(text: str, max_bytes: int) -> str:
    """Keep the newest code points that fit."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= max_bytes else _tail(raw, max_bytes).decode()


def keep_head(text: str, max_bytes: int) -> str:
    """Keep the oldest code points that fit."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= max_bytes else _head(raw, max_bytes).decode()


def keep_ends(text: str, max_bytes: int) -> str:
    """Keep head and tail around an omission line, or only the tail when room is small."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= max_bytes:
        return text
    if max_bytes < HEAD_TAIL_FROM_BYTES:
        return _tail(raw, max_bytes).decode()
    room = max_bytes - size(_omission(len(raw)))
    head = _head(raw, room // _HEAD_SHARE)
    tail = _tail(raw, room - len(head))
    omitted = _omission(len(raw) - len(head) - len(tail))
    return f"{head.decode()}{omitted}{tail.decode()}"


def _tail(raw: bytes, max_bytes: int) -> bytes:
    start = len(raw) - max(max_bytes, 0)
    while start < len(raw) and raw[start] & 0xC0 == 0x80:
        start += 1
    return raw[start:]


def _head(raw: bytes, max_bytes: int) -> bytes:
    end = max(max_bytes, 0)
    while end > 0 and raw[end] & 0xC0 == 0x80:
        end -= 1
    return raw[:end]


def reserve(body: str, suffix: str, max_bytes: int, *, truncated: bool, ends: bool = False) -> str:
    """Join body and suffix within ``max_bytes``; the mark is added once when anything is cut."""
    mark = f"\n{TRUNCATED}"
    whole = body + suffix + (mark if truncated else "")
    if size(whole) <= max_bytes:
        return whole
    fixed = suffix + mark
    room = max_bytes - size(fixed)
    if room < 0:
        return keep_tail(fixed, max_bytes)
    return (keep_ends(body, room) if ends else keep_tail(body, room)) + fixed


def reserve_prefix(prefix: str, body: str, max_bytes: int, *, truncated: bool) -> str:
    """Join prefix and body within ``max_bytes``; the body keeps its tail."""
    mark = f"\n{TRUNCATED}"
    whole = prefix + body + (mark if truncated else "")
    if size(whole) <= max_bytes:
        return whole
    room = max_bytes - size(prefix) - size(mark)
    if room < 0:
        return keep_head(prefix + mark, max_bytes)
    return prefix + keep_tail(body, room) + mark


def finalize(text: str, max_bytes: int, mark: str = TRUNCATED) -> str:
    """Keep the head of a complete text within ``max_bytes`` and say that it was cut."""
    if size(text) <= max_bytes:
        return text
    closing = f"\n{mark}"
    room = max_bytes - size(closing)
    if room < 0:
        return keep_tail(closing, max_bytes)
    return keep_head(text, room) + closing


def _omission(count: int) -> str:
    return f"\n[… {count} bytes omitted …]\n"
