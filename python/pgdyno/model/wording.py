"""English of numbers and names: one spelling for all texts that people read."""

from __future__ import annotations


def plural(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun, e.g. `1 trial`, `3 trials`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def listed(names: list[str] | tuple[str, ...], last: str = "and") -> str:
    """Names as a sentence lists them, e.g. `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"
