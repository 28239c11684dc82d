"""English of numbers and names: one spelling for all texts that people read."""

from __future__ import annotations

CHOSEN = "a threshold that is chosen, not measured"
"""Stands where a number decides for which nobody measured a better one."""


def plural(number: int, one: str, many: str | None = None, *, thousands: bool = False) -> str:
    """A number with its noun, e.g. `1 trial`, `3 trials`.

    Args:
        number: Of things that are counted; measured values have units, see `model.units`.
        one: What follows 1, e.g. `round has`.
        many: What follows any other number, e.g. `rounds have`; None: `one` with an s.
        thousands: With separators, as nobody types it anywhere: `1,230 requests`.
    """
    shown = f"{number:,}" if thousands else str(number)
    return f"{shown} {one if number == 1 else many or one + 's'}"


def often(times: int) -> str:
    """How many times, as a sentence says it: `once`, `3 times`, `27,654 times`."""
    return "once" if times == 1 else plural(times, "time", thousands=True)


def listed(names: list[str] | tuple[str, ...], last: str = "and") -> str:
    """Names as a sentence lists them, e.g. `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def deciding_rounds(rounds: int, aside: str = "") -> str:
    """How many rounds would decide what is not decided; `aside` stands behind their number."""
    return (
        f"about {plural(rounds, 'round')} in all{aside} would decide it, if ratio and spread stay"
    )


def capital(text: str) -> str:
    """Words as a sentence begins, with a capital letter."""
    return text[:1].upper() + text[1:]


def small(text: str) -> str:
    """Words as they stand within a sentence, with a small letter."""
    return text[:1].lower() + text[1:]
