"""Cases as data: reading, and filling in what their steps refer to."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from tests.support.paths import TESTS

FILE = TESTS / "cases" / "terminal.jsonl"
_REFERENCE = re.compile(r"\$([A-Za-z][A-Za-z0-9]*(?:@i@)?)(?:\.(\w+))?")


@dataclass(frozen=True)
class Case:
    id: str
    category: str
    steps: list[dict[str, Any]]
    expect: list[dict[str, Any]]
    requires: list[str] = field(default_factory=list)
    fault: str = ""
    notes: str = ""
    source: list[str] = field(default_factory=list)
    platform: str = ""
    depends_on_choice: str = ""
    repeat: int = 1
    service_env: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def tools(self) -> set[str]:
        """Every verb the case uses, nested ones too."""
        return {step["tool"] for step in _flat(self.steps)}


def load_cases() -> list[Case]:
    return [Case(**json.loads(line)) for line in FILE.read_text(encoding="utf-8").splitlines()]


def _flat(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for step in steps:
        found.append(step)
        found += _flat(step["args"].get("steps", []))
        for branch in step["args"].get("branches", []):
            found += _flat(branch)
    return found


def text_of(value: Any) -> str:
    """Write out a text that is given as a recipe."""
    if isinstance(value, str):
        return value
    if "$concat" in value:
        return "".join(map(text_of, value["$concat"]))
    template, count = value["$repeat"]
    return "".join(template.replace("%d", str(number)) for number in range(1, count + 1))


def with_index(value: Any, index: int) -> Any:
    """Replace ``@i@`` by the number of the round, in depth."""
    if isinstance(value, str):
        return value.replace("@i@", str(index))
    if isinstance(value, list):
        return [with_index(item, index) for item in value]
    if isinstance(value, dict):
        return {key: with_index(item, index) for key, item in value.items()}
    return value


def resolve(value: str, names: dict[str, dict[str, str]]) -> str:
    """Replace ``$S1`` or ``$b.taskId`` by the id it stands for."""
    match = _REFERENCE.fullmatch(value)
    if match is None or match[1] not in names:
        return value
    ids = names[match[1]]
    return ids[match[2]] if match[2] else next(iter(ids.values()), "")
