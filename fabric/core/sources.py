"""Where settings come from: defaults, a TOML file, the environment, flags; later wins.

Theory: every source is first turned into the same form, rows of (key, raw value, origin) with
keys like ``worker.readiness.idle_silence_s``. A row is checked against the field it names and
converted to the field's type; the sections are built from the inside out. Nothing is raised on
the way: faults are gathered (unknown keys with the nearest known one, wrong types, values out
of range) and raised together, so that a file with five mistakes is mended in one go.

A secret has the type ``Secret`` or a name that ends in ``_file``. Neither the values of the
first nor anything that looks like one may come from a flag, since flags show in process lists.
"""

import dataclasses
import difflib
import math
import textwrap
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from fabric.core.settings import Secret, Settings, SettingsError

ENV_PREFIX = "FABRIC_"
# Variables with this prefix that are no settings.
ENV_OTHERS = frozenset(
    {
        "FABRIC_CONFIG", "FABRIC_STATE_DIR", "FABRIC_GATEWAY", "FABRIC_TOKEN",
        "FABRIC_TOKEN_FILE", "FABRIC_AGENT", "FABRIC_CA_FILE", "FABRIC_CERT_FILE",
        "FABRIC_KEY_FILE", "FABRIC_TEST_TIME_FACTOR", "FABRIC_SESSION_ID",
    }
)  # fmt: skip
DEFAULT_ORIGIN = "default"
_TOML_WIDTH = 96
_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: its dotted name, its field's type and its default."""

    name: str
    kind: Any
    default: Any

    @property
    def variable(self) -> str:
        """The environment variable of this key."""
        *sections, last = self.name.split(".")
        return f"{ENV_PREFIX}{'_'.join(sections).upper()}__{last.upper()}"

    @property
    def is_secret(self) -> bool:
        """Tell whether the value must not be shown or given as a flag."""
        return self.kind is Secret


@dataclass(frozen=True, slots=True)
class Loaded:
    """Effective settings and where each value came from, by dotted key."""

    settings: Settings
    origins: Mapping[str, str]
    config_file: str | None = None

    def rows(self) -> Iterator[tuple[str, Any, str]]:
        """Yield key, value (secrets hidden) and origin of every setting."""
        for key in known_keys():
            value = _get(self.settings, key.name)
            yield key.name, "***" if key.is_secret and value else value, self.origins[key.name]


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    raw: Any
    origin: str


def known_keys() -> tuple[Key, ...]:
    """List every setting in the order of the sections."""
    return tuple(_keys_of(Settings, ""))


def load(
    *,
    config: str | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> Loaded:
    """Read all sources. ``config`` (else ``FABRIC_CONFIG``) names the TOML file.

    Raises: SettingsError with every fault.
    """
    environ = environ or {}
    faults: list[str] = []
    path = config or environ.get("FABRIC_CONFIG") or None
    rows = [
        *_file_rows(path, faults),
        *_environment_rows(environ, faults),
        *(_Row(name, raw, "flag") for name, raw in (flags or {}).items()),
    ]
    keys = {key.name: key for key in known_keys()}
    values: dict[str, Any] = {}
    origins = dict.fromkeys(keys, DEFAULT_ORIGIN)
    for row in rows:
        key = keys.get(row.name)
        if key is None:
            faults.append(f"{row.name} ({row.origin}): unknown key{_nearest(row.name, keys)}")
        elif key.is_secret and row.origin == "flag":
            faults.append(f"{row.name} (flag): a secret; give it as {key.variable} or by file")
        else:
            try:
                values[row.name] = _convert(key.kind, row.raw)
                origins[row.name] = row.origin
            except ValueError as error:
                shown = "***" if key.is_secret else repr(row.raw)
                faults.append(f"{row.name} = {shown} ({row.origin}): {error}")
    settings = _build(Settings, "", values, origins, faults)
    if faults or settings is None:
        raise SettingsError("; ".join(faults), faults=len(faults))
    return Loaded(settings, origins, path)


def example() -> str:
    """Write a TOML file that holds every key with its default."""
    lines = [
        "# Every setting with its default. Name the file with --config or FABRIC_CONFIG.",
        "# FABRIC_<SECTION>__<KEY> (FABRIC_WORKER_READINESS__IDLE_SILENCE_S=2) overrides a key,",
        "# --set section.key=value overrides both. Seconds end in _s, sizes in _bytes.",
    ]
    section = None
    for key in known_keys():
        head, _, last = key.name.rpartition(".")
        if head != section:
            section = head
            lines += ["", f"[{head}]"]
        lines.append(f"{last} = {_toml(key.default)}")
    return "\n".join(lines) + "\n"


def _keys_of(cls: type, prefix: str) -> Iterator[Key]:
    hints = typing.get_type_hints(cls)
    for item in dataclasses.fields(cls):
        kind = hints[item.name]
        name = f"{prefix}{item.name}"
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            yield from _keys_of(kind, f"{name}.")
        elif item.default_factory is not dataclasses.MISSING:
            yield Key(name, kind, item.default_factory())
        else:
            yield Key(name, kind, item.default)


def _get(settings: Settings, name: str) -> Any:
    value: Any = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _file_rows(path: str | None, faults: list[str]) -> list[_Row]:
    if path is None:
        return []
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        faults.append(f"config file {path}: {error.strerror or error}")
        return []
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        faults.append(f"config file {path}: not valid TOML: {error}")
        return []
    return [_Row(name, raw, path) for name, raw in _flatten(table, "")]


def _flatten(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _environment_rows(environ: Mapping[str, str], faults: list[str]) -> list[_Row]:
    by_variable = {key.variable: key.name for key in known_keys()}
    rows = []
    for variable in sorted(environ):
        if not variable.startswith(ENV_PREFIX) or variable in ENV_OTHERS:
            continue
        name = by_variable.get(variable)
        if name is not None:
            rows.append(_Row(name, environ[variable], f"env {variable}"))
        elif "__" in variable:
            faults.append(f"{variable} (env): unknown key{_nearest(variable, by_variable)}")
    return rows


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if not near:
        last = name.rpartition(".")[2]
        near = [key for key in known if key.rpartition(".")[2] == last][:1]
    return f" (did you mean {near[0]}?)" if near else ""


def _build(
    cls: Any, prefix: str, values: Mapping[str, Any], origins: Mapping[str, str], faults: list[str]
) -> Any:
    """Build a section from the inside out; None when it or a part of it has faults."""
    hints = typing.get_type_hints(cls)
    arguments: dict[str, Any] = {}
    whole = True
    for item in dataclasses.fields(cls):
        name = f"{prefix}{item.name}"
        kind = hints[item.name]
        if dataclasses.is_dataclass(kind):
            arguments[item.name] = _build(kind, f"{name}.", values, origins, faults)
            whole = whole and arguments[item.name] is not None
        elif name in values:
            arguments[item.name] = values[name]
    if not whole:
        return None
    try:
        return cls(**arguments)
    except SettingsError as error:
        faults.extend(_with_origin(row, origins) for row in error.message.split("; "))
        return None


def _with_origin(row: str, origins: Mapping[str, str]) -> str:
    name, equals, rest = row.partition(" = ")
    origin = origins.get(name)
    if not equals or origin is None:
        return row
    value, colon, rule = rest.rpartition(": ")
    return f"{name} = {value} ({origin}){colon}{rule}"


def _convert(kind: Any, raw: Any) -> Any:
    """Turn a raw value (TOML's, or a string) into the field's type. Raises: ValueError."""
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        inner = [arg for arg in typing.get_args(kind) if arg is not type(None)]
        return None if raw is None or raw == "" else _convert(inner[0], raw)
    if typing.get_origin(kind) is tuple:
        return _convert_tuple(raw)
    if kind is bool:
        return _convert_bool(raw)
    if kind in (int, float):
        return _convert_number(kind, raw)
    if not isinstance(raw, str):
        raise ValueError(f"must be a string, not {type(raw).__name__}")
    if issubclass(kind, Enum):
        try:
            return kind(raw)
        except ValueError:
            raise ValueError(f"must be one of {', '.join(str(item) for item in kind)}") from None
    return kind(raw)


def _convert_tuple(raw: Any) -> tuple[str, ...]:
    if isinstance(raw, str):
        # One variable, many values: the newline is the only separator no program name contains.
        parts: Sequence[Any] = [part.strip() for part in raw.replace(";", "\n").splitlines()]
        return tuple(part for part in parts if part)
    if isinstance(raw, list) and all(isinstance(item, str) for item in raw):
        return tuple(raw)
    raise ValueError("must be a list of strings")


def _convert_bool(raw: Any) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.strip().lower() in _TRUE | _FALSE:
        return raw.strip().lower() in _TRUE
    raise ValueError("must be true or false")


def _convert_number(kind: Any, raw: Any) -> Any:
    noun = "a whole number" if kind is int else "a number"
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        raise ValueError(f"must be {noun}")
    if kind is int and isinstance(raw, float):
        raise ValueError(f"must be {noun}")
    try:
        value = kind(raw.replace("_", "") if isinstance(raw, str) else raw)
    except ValueError:
        raise ValueError(f"must be {noun}") from None
    if not math.isfinite(value):
        raise ValueError("must be finite")
    return value


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, tuple):
        items = ", ".join(_toml(item) for item in value)
        if len(items) <= _TOML_WIDTH:
            return f"[{items}]"
        return "[\n" + textwrap.indent(textwrap.fill(items, _TOML_WIDTH), "  ") + ",\n]"
    text = value.value if isinstance(value, Enum) else str(value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
