r"""Named keys as the bytes a real terminal sends for them.

A name is a key, with modifiers in front: ``Enter``, ``Up``, ``F5``, ``Ctrl-C``, ``Alt-x``,
``Shift-Tab``, ``Ctrl-Shift-Left``; letters and signs stand for themselves. Case does not
matter but for single characters. What is sent depends on what the application asked for:

- cursor keys, ``Home`` and ``End`` are ``ESC O x`` in application cursor mode, else ``ESC [ x``;
- the keys of the number pad (``KP0`` … ``KPEnter``) are ``ESC O x`` in application keypad
  mode, else their characters;
- a modified function key carries xterm's parameter: ``ESC [ 1 ; 5 A`` is ``Ctrl-Up``;
- ``Alt`` puts ``ESC`` in front of what has no such parameter.

The codes are xterm's, which every common TERM but a few shares; what these few spell
otherwise (``linux``, ``screen``, ``tmux``, ``rxvt``) is in ``_FAMILIES``. ``Backspace`` is
the erase character the terminal is set to, since that is what its driver acts on.
"""

import re

from fabric.core.errors import InvalidRequestError
from workers.text.modes import TerminalModes

ESC = b"\x1b"
_PLAIN = {
    "enter": b"\r", "return": b"\r", "tab": b"\t", "escape": ESC, "esc": ESC, "space": b" ",
    "linefeed": b"\n",
}  # fmt: skip
_CURSOR = {
    "up": "A", "down": "B", "right": "C", "left": "D", "begin": "E", "end": "F", "home": "H",
}  # fmt: skip
_TILDE = {
    "insert": 2, "delete": 3, "pageup": 5, "pagedown": 6, "f5": 15, "f6": 17, "f7": 18, "f8": 19,
    "f9": 20, "f10": 21, "f11": 23, "f12": 24, "f13": 25, "f14": 26, "f15": 28, "f16": 29,
    "f17": 31, "f18": 32, "f19": 33, "f20": 34,
}  # fmt: skip
_FUNCTION = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_PAD = {
    "kp0": ("0", "p"), "kp1": ("1", "q"), "kp2": ("2", "r"), "kp3": ("3", "s"), "kp4": ("4", "t"),
    "kp5": ("5", "u"), "kp6": ("6", "v"), "kp7": ("7", "w"), "kp8": ("8", "x"), "kp9": ("9", "y"),
    "kpplus": ("+", "k"), "kpminus": ("-", "m"), "kptimes": ("*", "j"), "kpdivide": ("/", "o"),
    "kpdot": (".", "n"), "kpcomma": (",", "l"), "kpenter": ("\r", "M"), "kpequal": ("=", "X"),
}  # fmt: skip
_ALIASES = {
    "del": "delete", "ins": "insert", "pgup": "pageup", "pgdn": "pagedown", "pgdown": "pagedown",
    "bs": "backspace", "page_up": "pageup", "page_down": "pagedown", "ret": "enter",
    "arrowup": "up", "arrowdown": "down", "arrowleft": "left", "arrowright": "right",
}  # fmt: skip
_MODIFIERS = {
    "ctrl": 4, "control": 4, "c": 4, "alt": 2, "meta": 2, "m": 2, "a": 2, "shift": 1, "s": 1,
}  # fmt: skip
_SHIFT, _ALT, _CTRL = 1, 2, 4
_CTRL_SIGNS = {
    " ": 0, "2": 0, "3": 27, "4": 28, "5": 29, "6": 30, "7": 31, "8": 127, "/": 31, "?": 127,
}  # fmt: skip
# What other terminals send for unmodified keys, by the beginning of TERM.
_LINUX = {
    "f1": b"\x1b[[A", "f2": b"\x1b[[B", "f3": b"\x1b[[C", "f4": b"\x1b[[D", "f5": b"\x1b[[E",
    "home": b"\x1b[1~", "end": b"\x1b[4~",
}  # fmt: skip
_SCREEN = {"home": b"\x1b[1~", "end": b"\x1b[4~"}
_RXVT = {
    "home": b"\x1b[7~", "end": b"\x1b[8~", "f1": b"\x1b[11~", "f2": b"\x1b[12~",
    "f3": b"\x1b[13~", "f4": b"\x1b[14~",
}  # fmt: skip
_FAMILIES = (("linux", _LINUX), ("screen", _SCREEN), ("tmux", _SCREEN), ("rxvt", _RXVT))
_SPLIT = re.compile(r"(?<=.)[-+](?=.)", re.DOTALL)


def encode(
    names: tuple[str, ...], modes: TerminalModes, *, term: str = "xterm", erase: bytes = b"\x7f"
) -> bytes:
    """Return the bytes of some keys, in order.

    ``erase`` is the terminal's erase character. Raises: InvalidRequestError naming the key.
    """
    return b"".join(_key(name, modes, term, erase) for name in names)


def _key(name: str, modes: TerminalModes, term: str, erase: bytes) -> bytes:
    modifiers, base = _parts(name)
    if len(base) == 1:
        return _character(base, modifiers, name)
    key = base.lower()
    key = _ALIASES.get(key, key)
    if key in _PLAIN:
        return _plain(key, modifiers)
    if key == "backspace":
        code = b"\x08" if modifiers & _CTRL else (erase or b"\x7f")
        return ESC + code if modifiers & _ALT else code
    if key in _PAD:
        character, final = _PAD[key]
        if modes.application_keypad and not modifiers:
            return ESC + b"O" + final.encode()
        return _character(character, modifiers, name)
    special = _special(key, modifiers, modes, term)
    if special is None:
        raise InvalidRequestError(
            f"no key is named {name[:40]!r}; there are single characters, Enter, Tab, Escape, "
            "Space, Backspace, Delete, Insert, Home, End, PageUp, PageDown, Up, Down, Left, Right, "
            "F1 to F20, KP0 to KP9, with Ctrl-, Alt- and Shift- in front",
            key=name[:40],
        )
    return special


def _parts(name: str) -> tuple[int, str]:
    """Divide a name into its modifiers and its key."""
    modifiers, rest = 0, name
    while True:
        split = _SPLIT.search(rest)
        if split is None:
            break
        modifier = _MODIFIERS.get(rest[: split.start()].lower())
        if modifier is None:
            break
        modifiers |= modifier
        rest = rest[split.end() :]
    if not rest:
        raise InvalidRequestError("a key must have a name", field="keys")
    return modifiers, rest


def _character(char: str, modifiers: int, name: str) -> bytes:
    if modifiers & _CTRL:
        upper = char.upper()
        if "@" <= upper <= "_":
            code = bytes([ord(upper) - 64])
        elif char in _CTRL_SIGNS:
            code = bytes([_CTRL_SIGNS[char]])
        else:
            raise InvalidRequestError(f"no terminal sends {name[:40]!r}", key=name[:40])
    else:
        try:
            code = (char.upper() if modifiers & _SHIFT else char).encode()
        except UnicodeEncodeError as error:
            raise InvalidRequestError("a key must be valid Unicode", field="keys") from error
    return ESC + code if modifiers & _ALT else code


def _plain(key: str, modifiers: int) -> bytes:
    if key == "tab" and modifiers & _SHIFT:
        code = b"\x1b[Z"
    elif key == "space" and modifiers & _CTRL:
        code = b"\0"
    else:
        code = _PLAIN[key]
    return ESC + code if modifiers & _ALT else code


def _special(key: str, modifiers: int, modes: TerminalModes, term: str) -> bytes | None:
    if not modifiers:
        for beginning, codes in _FAMILIES:
            if term.startswith(beginning) and key in codes:
                return codes[key]
    parameter = f"1;{modifiers + 1}" if modifiers else ""
    if key in _CURSOR:
        if modes.application_cursor and not modifiers:
            return ESC + b"O" + _CURSOR[key].encode()
        return f"\x1b[{parameter}{_CURSOR[key]}".encode()
    if key in _FUNCTION:
        if not modifiers:
            return ESC + b"O" + _FUNCTION[key].encode()
        return f"\x1b[{parameter}{_FUNCTION[key]}".encode()
    if key in _TILDE:
        suffix = f";{modifiers + 1}" if modifiers else ""
        return f"\x1b[{_TILDE[key]}{suffix}~".encode()
    return None
