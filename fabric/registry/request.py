"""An open request checked and turned into what a worker needs.

Theory: everything that can be refused without looking at the owner's sessions is refused
here, before a name or an id is used; the worker gets a spec with nothing left open but
what only its node can know (does the directory exist, is the program there).
"""

import re
from collections.abc import Mapping

from fabric.core.errors import InvalidRequestError, UnsupportedError
from fabric.core.model import OpenRequest, OpenSpec, SharedLife
from fabric.core.policy import OwnerPolicy
from fabric.core.settings import RegistrySettings, SharedSettings, ShellSettings
from fabric.core.shared import SHARED_NAME
from fabric.registry.owners import Owner
from fabric.registry.session import Session

SHELL = "shell"
MAX_NAME_CHARS = 128
MAX_PATH_CHARS = 4096
MAX_SIDE = 4096
MAX_ENV_BYTES = 131_072
MAX_COMMAND_BYTES = 65_536
# What terminfo may file an entry under; a slash would name another folder.
_TERM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def programs_of(shell: ShellSettings) -> Mapping[str, tuple[str, ...]]:
    """Return the argv of each configured program type."""
    rows = (row.partition("=") for row in shell.programs)
    return {name.strip(): tuple(argv.split()) for name, _, argv in rows}


def check(request: OpenRequest, programs: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse what is malformed. Raises: InvalidRequestError, UnsupportedError."""
    _require(bool(request.type), "type", "must be a non-empty string")
    if request.type != SHELL and request.type not in programs:
        there = ", ".join((SHELL, *sorted(programs)))
        raise UnsupportedError(
            f"no session type is named {request.type[:40]!r}; there are {there}", field="type"
        )
    _require(
        request.shared or request.name != SHARED_NAME,
        "name",
        f"{SHARED_NAME} is kept for the terminal that an owner shares with a person",
    )
    if request.name is not None:
        _require(bool(request.name), "name", "must be non-empty when it is given")
        _require(
            len(request.name) <= MAX_NAME_CHARS and request.name.isprintable(),
            "name",
            f"must have at most {MAX_NAME_CHARS} printable characters",
        )
    for field, text, limit in (
        ("cwd", request.cwd, MAX_PATH_CHARS),
        ("term", request.term, MAX_NAME_CHARS),
        ("command", request.command, MAX_COMMAND_BYTES),
    ):
        _require(text is None or (bool(text) and "\0" not in text), field, "must be non-empty text")
        _require(text is None or len(text.encode()) <= limit, field, f"must fit {limit} bytes")
    _require(
        request.term is None or bool(_TERM.fullmatch(request.term)),
        "term",
        "must be the name of a terminal, of letters, digits and . _ + -",
    )
    _require(
        request.cwd is None or request.cwd.partition("/")[0] != "~",
        "cwd",
        "~ stands for nothing here; write the path, or leave it out for the usual folder",
    )
    for field, side in (("rows", request.rows), ("cols", request.cols)):
        _require(side is None or 1 <= side <= MAX_SIDE, field, f"must be 1 to {MAX_SIDE}")
    wait = request.timeout_s
    _require(wait is None or 0 < wait < float("inf"), "timeout_s", "must be greater than 0")
    _check_env(request.env)


def spec_of(
    request: OpenRequest,
    session: Session,
    owner: Owner,
    *,
    programs: Mapping[str, tuple[str, ...]],
    policy: OwnerPolicy,
    shell: ShellSettings,
    settings: RegistrySettings,
    wall: float,
    shared: SharedSettings | None = None,
) -> OpenSpec:
    """Build the worker's spec of a reserved session."""
    size = (shell.rows, shell.cols)
    if request.shared and shared is not None:
        size = (shared.rows, shared.cols)
    return OpenSpec(
        session_id=session.session_id,
        owner_id=owner.owner_id,
        epoch=session.epoch,
        principal=owner.principal,
        agent=owner.agent,
        type=request.type,
        mode=session.mode,
        name=request.name,
        cwd=request.cwd,
        env=request.env,
        network=policy.network or settings.network,
        workspace_root=policy.workspace_root,
        run_as=policy.run_as,
        memory_max_bytes=policy.memory_max_bytes,
        pids_max=policy.pids_max,
        cpu_weight=policy.cpu_weight,
        argv=None if request.type == SHELL else programs[request.type],
        rows=request.rows if request.rows is not None else size[0],
        cols=request.cols if request.cols is not None else size[1],
        term=request.term if request.term is not None else "dumb",
        command=request.command,
        startup_timeout_s=request.timeout_s,
        created_at=wall,
        shared=SharedLife() if request.shared else None,
    )


def _check_env(env: tuple[tuple[str, str], ...]) -> None:
    size = 0
    for name, value in env:
        _require(
            bool(_ENV_NAME.fullmatch(name)) and not name.startswith("FABRIC_"),
            "env",
            f"{name[:40]!r} is not a variable name a session may set",
        )
        _require("\0" not in value, "env", f"the value of {name} holds a NUL")
        size += len(name) + len(value.encode()) + 2
    _require(size <= MAX_ENV_BYTES, "env", f"must fit {MAX_ENV_BYTES} bytes in all")


def _require(ok: bool, field: str, rule: str) -> None:
    if not ok:
        raise InvalidRequestError(f"{field}: {rule}", field=field)
