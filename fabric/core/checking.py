"""The gathering of faults in a section of settings, so that all are told at once."""

from dataclasses import fields

from fabric.core.errors import SettingsError


class Faults:
    """The faults of one section so far."""

    def __init__(self, section: str) -> None:
        self._section = section
        self._rows: list[str] = []

    def check(self, ok: bool, name: str, value: object, rule: str) -> None:
        """Note a value that breaks its rule."""
        if not ok:
            self._rows.append(f"{self._section}.{name} = {value!r}: {rule}")

    def raise_if_any(self) -> None:
        """Raise what was noted. Raises: SettingsError."""
        if self._rows:
            raise SettingsError("; ".join(self._rows))


def positive(section: str, item: object, *skip: str) -> Faults:
    """Begin with the fault that a number of a section is not greater than 0."""
    faults = Faults(section)
    for entry in fields(item):  # type: ignore[arg-type]
        value = getattr(item, entry.name)
        if entry.name in skip or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        faults.check(value > 0, entry.name, value, "must be greater than 0")
    return faults
