"""``fabric config``: the effective settings and where each comes from."""

from fabric.cli.context import Context
from fabric.cli.parser import keys_below
from fabric.core.plain import to_plain
from fabric.core.sources import example


def config(context: Context) -> int:
    """Show the effective settings, or print an example file."""
    if context.arguments.what == "example":
        text = example()
        context.output.result({"toml": text}, text, text)
        return 0
    wanted = set(keys_below(context.arguments.key))
    rows = [row for row in context.loaded.rows() if row[0] in wanted]
    width = max(len(name) for name, _, _ in rows)
    context.output.result(
        {name: {"value": to_plain(value), "origin": origin} for name, value, origin in rows},
        "\n".join(f"{name:<{width}}  {_shown(value)}  ({origin})" for name, value, origin in rows),
        "\n".join(_shown(value) for _, value, _ in rows),
    )
    if context.loaded.config_file:
        context.output.note(f"config file: {context.loaded.config_file}")
    return 0


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return str(value) if value != "" else '""'
