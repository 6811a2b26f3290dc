"""The last mile: results that somebody has replaced after they were rendered.

A harness may deny a call, answer it in the tool's place, or rewrite what came out. Such a
result never saw the renderer, so it is bounded once more right before the model reads it.
Only a result of exactly one text block is touched: whoever made several, or none, knows
what they are for.
"""

from collections.abc import Sequence
from typing import Any

from fabric.core.errors import InvalidRequestError
from fabric.core.settings import MIN_RESULT_BYTES
from fabric.tools.bound import RESULT_TRUNCATED, TRUNCATED, finalize, size
from fabric.tools.table import Surface

Block = dict[str, Any]


def mark_of(surface: Surface) -> str:
    """Return the words that say that a result of this family was cut."""
    return RESULT_TRUNCATED if surface is Surface.TASK else TRUNCATED


def finalize_blocks(
    blocks: Sequence[Block], max_bytes: int, surface: Surface = Surface.TERMINAL
) -> list[Block]:
    """Bound a result in content blocks (``{"type": "text", "text": ...}``) to ``max_bytes``.

    Raises: InvalidRequestError for a bound below the least one.
    """
    if max_bytes < MIN_RESULT_BYTES:
        raise InvalidRequestError(f"max_bytes must be at least {MIN_RESULT_BYTES}")
    copied = list(blocks)
    if len(copied) != 1 or copied[0].get("type") != "text":
        return copied
    text = copied[0].get("text")
    if not isinstance(text, str) or size(text) <= max_bytes:
        return copied
    return [{**copied[0], "text": finalize(text, max_bytes, mark_of(surface))}]
