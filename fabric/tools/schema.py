"""Arguments of tools: closed JSON Schemas, and a check that reports every fault at once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fabric.core.errors import InvalidArgumentsError

MAX_SAFE_INTEGER = 2**53 - 1  # what every JSON reader can hold exactly


@dataclass(frozen=True, slots=True)
class Param:
    """One argument of a tool."""

    name: str
    kind: str  # string, boolean, integer, number, object
    description: str
    required: bool = False
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    default: Any = None

    def schema(self) -> dict[str, Any]:
        """Give the JSON Schema of the value."""
        made: dict[str, Any] = {"type": self.kind, "description": self.description}
        if self.choices:
            made["enum"] = list(self.choices)
        if self.minimum is not None:
            made["minimum"] = self.minimum
        if self.default is not None:
            made["default"] = self.default
        if self.kind == "object":
            made["additionalProperties"] = {"type": "string"}
        return made


def schema_of(params: tuple[Param, ...]) -> dict[str, Any]:
    """Give the closed JSON Schema of an argument object."""
    made: dict[str, Any] = {
        "type": "object",
        "properties": {param.name: param.schema() for param in params},
        "additionalProperties": False,
    }
    required = [param.name for param in params if param.required]
    if required:
        made["required"] = required
    return made


def check(
    params: tuple[Param, ...], args: Any, unexpected: str = 'unknown property "{name}"'
) -> dict[str, Any]:
    """Return the arguments with defaults filled in. Raises: InvalidArgumentsError, all faults.

    ``unexpected`` is how a family of tools says that it does not know a property.
    """
    if not isinstance(args, Mapping):
        raise InvalidArgumentsError("invalid arguments: expected a JSON object")
    known = {param.name: param for param in params}
    faults = [unexpected.format(name=name) for name in args if name not in known]
    checked: dict[str, Any] = {}
    for param in params:
        if param.name not in args:
            if param.required:
                faults.append(f'missing required property "{param.name}"')
            else:
                checked[param.name] = param.default
            continue
        value = args[param.name]
        fault = _fault(param, value)
        if fault:
            faults.append(f'"{param.name}" {fault}')
        checked[param.name] = value
    if faults:
        raise InvalidArgumentsError(f"invalid arguments: {'; '.join(faults)}")
    return checked


def _fault(param: Param, value: Any) -> str | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if param.kind == "string":
        if not isinstance(value, str):
            return "must be a string"
        if param.choices and value not in param.choices:
            listed = ",".join(f'"{choice}"' for choice in param.choices)
            return f"must be one of [{listed}]"
    elif param.kind == "boolean":
        if not isinstance(value, bool):
            return "must be a boolean"
    elif param.kind in ("integer", "number"):
        if not number:
            return "must be a number"
        if not math.isfinite(value) or abs(value) > MAX_SAFE_INTEGER:
            return "must be a safe number"
        if param.kind == "integer" and value != int(value):
            return "must be a whole number"
        if param.minimum is not None and value < param.minimum:
            return f"must be at least {param.minimum}"
    elif not isinstance(value, Mapping):
        return "must be an object"
    elif not all(isinstance(entry, str) for pair in value.items() for entry in pair):
        return "must map strings to strings"
    return None
