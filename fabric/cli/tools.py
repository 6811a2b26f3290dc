"""The command ``fabric tools``: the model-facing surface, without a fabric being up."""

from fabric.cli.context import Context
from fabric.tools.table import Surface, describe


def tools(context: Context) -> int:
    """Print the tools with their schemas, and the guidance for a model."""
    chosen = frozenset(map(Surface, context.arguments.surface)) or frozenset(Surface)
    background = context.loaded.settings.tasks.enabled
    listing = describe(chosen, background=background)
    lines = []
    for row in listing["tools"]:
        required = row["parameters"].get("required", [])
        names = [
            name if name in required else f"[{name}]" for name in row["parameters"]["properties"]
        ]
        lines += [f"{' '.join([row['name'], *names])}", f"    {row['description']}"]
    text = "\n".join([*lines, "", listing["guidance"]])
    context.output.result(listing, text, "\n".join(row["name"] for row in listing["tools"]))
    return 0
