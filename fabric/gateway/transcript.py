"""The record of tool calls, one JSON object a line, for whoever keeps transcripts.

What is typed is recorded only where it is known that the terminal shows it anyway: the last
this gateway saw of the session was a proven prompt that echoes. Everything else that is
typed (a password, but also an answer to a program that had gone quiet) is withheld, and
withheld text is hidden wherever it turns up later, such as in the label of a task. Results
are the bounded texts a model got. Off, nothing of this runs.
"""

import asyncio
import json
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from fabric.core.ids import HostName, OwnerId
from fabric.core.model import PromptKind, WaitReason
from fabric.core.redact import HIDDEN, MIN_SECRET_CHARS, Redactor, names_a_secret, secrets_of
from fabric.core.settings import TranscriptSettings
from fabric.core.transcripts import TranscriptFile, sweep
from fabric.tools.surface import Answer

WITHHELD = "(not recorded: the terminal may not show it)"
TYPED = ("text", "data")
MAX_SESSIONS = 4096
MAX_OWNERS = 256
MAX_SECRETS = 64
SWEEP_EVERY_S = 600.0
_SHOWN = {kind.value for kind in (PromptKind.SHELL, PromptKind.CONTINUATION, PromptKind.LINE)}
_log = logging.getLogger(__name__)


class _Owner:
    """What is open for one owner, and what must not show in its record."""

    def __init__(self, secrets: frozenset[str]) -> None:
        self.file: TranscriptFile | None = None
        self._fixed = secrets
        self._found: OrderedDict[str, None] = OrderedDict()
        self.redactor = Redactor(secrets)

    def hide(self, secrets: Any) -> None:
        """Remember more secrets, the latest of them."""
        fresh = [item for item in secrets if len(item) >= MIN_SECRET_CHARS]
        if not fresh:
            return
        self._found.update(dict.fromkeys(fresh))
        while len(self._found) > MAX_SECRETS:
            self._found.popitem(last=False)
        self.redactor = Redactor({*self._fixed, *self._found})


class CallRecord:
    """Records the calls that come through this gateway."""

    def __init__(self, settings: TranscriptSettings, host: HostName) -> None:
        self._settings = settings
        self._name = f"calls-{''.join(c if c.isalnum() else '-' for c in host)}.jsonl"
        self._secrets = secrets_of(os.environ)
        self._owners: OrderedDict[str, _Owner] = OrderedDict()
        self._shows: OrderedDict[str, bool] = OrderedDict()
        self._swept_at = float("-inf")
        self._sweeping: asyncio.Task[None] | None = None

    @classmethod
    def begun(cls, settings: TranscriptSettings, host: HostName) -> "CallRecord | None":
        """Begin to record, or None where no record is wanted."""
        return cls(settings, host) if settings.dir else None

    def add(
        self, owner_id: OwnerId, name: str, arguments: Any, answer: Answer, took_s: float
    ) -> None:
        """Record a call with its answer."""
        owner = self._owner(owner_id)
        args = dict(arguments) if isinstance(arguments, Mapping) else {}
        shown = self._without_secrets(owner, args)
        self._learn(args, answer)
        row = {
            "at": round(time.time() - took_s, 3),
            "ms": round(took_s * 1000, 1),
            "owner": owner_id,
            "tool": name,
            "arguments": _clean(shown, owner.redactor),
            "error": answer.value["error"]["reason"] if answer.is_error else None,
            "result": owner.redactor.text(answer.text),
        }
        line = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace")
        self._write(owner, owner_id, line + b"\n")
        self._sweep()

    def lose(self, arguments: Any) -> None:
        """Note that a call ended without an answer: what its terminal shows is not known."""
        if isinstance(arguments, Mapping):
            self._shows.pop(_session_of(arguments), None)

    def close(self) -> None:
        """End every file."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for owner in self._owners.values():
            if owner.file is not None:
                owner.file.close()
        self._owners.clear()

    def _owner(self, owner_id: str) -> _Owner:
        owner = self._owners.get(owner_id)
        if owner is None:
            owner = self._owners[owner_id] = _Owner(self._secrets)
        self._owners.move_to_end(owner_id)
        while len(self._owners) > MAX_OWNERS:
            _, gone = self._owners.popitem(last=False)
            if gone.file is not None:
                gone.file.close()
        return owner

    def _without_secrets(self, owner: _Owner, args: dict[str, Any]) -> dict[str, Any]:
        shown = dict(args)
        session_id = _session_of(args)
        for name in TYPED:
            text = args.get(name)
            if isinstance(text, str) and text and not self._shows.get(session_id):
                shown[name] = WITHHELD
                owner.hide({text, text.strip(), *text.split("\n")})
        env = args.get("env")
        if isinstance(env, Mapping):
            pairs = {str(key): str(value) for key, value in env.items()}
            owner.hide(secrets_of(pairs))
            shown["env"] = {
                key: HIDDEN if names_a_secret(key) else value for key, value in pairs.items()
            }
        return shown

    def _learn(self, args: dict[str, Any], answer: Answer) -> None:
        """Remember whether what is typed next would show."""
        value = answer.value
        session_id = _session_of(args) or str(value.get("sessionId", ""))
        if not session_id:
            return
        if "motd" in value:  # an open returns at the first prompt
            self._shows[session_id] = True
        elif any(name in args for name in TYPED):
            self._shows[session_id] = (
                value.get("waitReason") == WaitReason.STDIN_READ.value
                and value.get("promptKind") in _SHOWN
            )
        else:
            return
        self._shows.move_to_end(session_id)
        while len(self._shows) > MAX_SESSIONS:
            self._shows.popitem(last=False)

    def _write(self, owner: _Owner, owner_id: str, line: bytes) -> None:
        for _ in range(2):  # a full file gives way to a new one, once for each line
            if owner.file is None or owner.file.is_full:
                owner.file = TranscriptFile(self._settings, owner_id, self._name)
            owner.file.write(line)
            if not owner.file.is_full:
                return

    def _sweep(self) -> None:
        now = time.monotonic()
        if now - self._swept_at < SWEEP_EVERY_S:
            return
        self._swept_at = now
        self._sweeping = asyncio.get_running_loop().create_task(self._sweep_aside())

    async def _sweep_aside(self) -> None:
        removed = await asyncio.to_thread(sweep, self._settings)
        if removed:
            _log.info("transcripts removed", extra={"files": removed})


def _clean(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, Mapping):
        return {key: _clean(item, redactor) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item, redactor) for item in value]
    return value


def _session_of(args: Mapping[str, Any]) -> str:
    found = args.get("sessionId") or args.get("id")
    return found if isinstance(found, str) else ""
