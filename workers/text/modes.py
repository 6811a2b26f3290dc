"""What the application last asked of its terminal.

Only the modes that matter to somebody who types or reads: how a paste and the arrow keys
must be sent, whether the alternate screen is shown, whether the mouse reports. They are
facts about the stream, kept up to date by the text parser; nothing is ever answered.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

ALTERNATE_SCREENS = frozenset({47, 1047, 1049})
_MOUSE_TRACKING = frozenset({9, 1000, 1001, 1002, 1003})
_FLAGS = {
    1: "application_cursor",
    25: "cursor_visible",
    66: "application_keypad",
    1004: "focus_events",
    1006: "mouse_sgr",
    2004: "bracketed_paste",
}


@dataclass(frozen=True, slots=True)
class TerminalModes:
    """A snapshot of the modes; ``mouse`` is the tracking mode (9, 1000-1003) or 0."""

    bracketed_paste: bool = False
    application_cursor: bool = False
    application_keypad: bool = False
    alternate_screen: bool = False
    cursor_visible: bool = True
    focus_events: bool = False
    mouse: int = 0
    mouse_sgr: bool = False

    def with_private(self, numbers: Iterable[int], on: bool) -> "TerminalModes":
        """Apply ``CSI ? numbers h`` (on) or ``l`` (off); unknown numbers change nothing."""
        modes = self
        for number in numbers:
            if number in _FLAGS:
                modes = replace(modes, **{_FLAGS[number]: on})
            elif number in ALTERNATE_SCREENS:
                modes = replace(modes, alternate_screen=on)
            elif number in _MOUSE_TRACKING:
                modes = replace(modes, mouse=number if on else 0)
        return modes

    def with_keypad(self, application: bool) -> "TerminalModes":
        """Apply ``ESC =`` (application keypad) or ``ESC >``."""
        return replace(self, application_keypad=application)

    def after_soft_reset(self) -> "TerminalModes":
        """Apply ``CSI ! p``: cursor keys, keypad and cursor visibility go back."""
        return replace(
            self, application_cursor=False, application_keypad=False, cursor_visible=True
        )
