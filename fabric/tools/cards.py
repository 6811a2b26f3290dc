"""How a user interface shows a call of a tool."""

from dataclasses import dataclass
from typing import Any

from fabric.tools.bound import keep_head
from fabric.tools.table import Card, Tool

MAX_TITLE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Shown:
    """How a user interface shows a call."""

    card: Card | None = None
    title: str = ""
    description: str = ""


def card_of(tool: Tool, args: dict[str, Any]) -> Shown:
    """Say how a call with checked arguments is shown; no card names a place in a file."""
    if args.get("run_in_background"):
        return Shown(Card.EXECUTE, f"Send to terminal {args['sessionId']} in background")
    facts = {**args, "name_or_type": args.get("name") or args.get("type")}
    title = tool.title.format_map(facts)
    if tool.card is not Card.TERMINAL:
        return Shown(tool.card, keep_head(title, MAX_TITLE_BYTES))
    session_id = args.get("sessionId") or args.get("id")
    where = f"Terminal {session_id}" if session_id else ""
    return Shown(tool.card, keep_head(title or "(send input)", MAX_TITLE_BYTES), where)
