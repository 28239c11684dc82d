"""What a number may be: one beyond it is refused with both values, and never clamped."""

from __future__ import annotations

from pgdyno.model.errors import PlanError


def require_within(
    named: str, value: float, least: float | None, most: float | None, hint: str
) -> None:
    """Refuse a number outside of its range, and what is no number.

    Args:
        named: What it is, as whoever asked for it writes it, e.g. `--rounds`, `seed`.
        value: That was asked for.
        least: That is allowed; None: any.
        most: That is allowed; None: any.
        hint: Why, as a sentence.

    Raises:
        PlanError: It is outside.
    """
    # A number that is none compares with nothing, so it is asked what it fulfils.
    if (least is None or value >= least) and (most is None or value <= most):
        return
    allowed = f"allowed are {_shown(least)} to {_shown(most)}"
    if most is None:
        allowed = f"allowed is {_shown(least)} or more"
    elif least is None:
        allowed = f"allowed is {_shown(most)} or less"
    raise PlanError(f"{named} is {_shown(value)}, {allowed}", hint)


def _shown(number: float | None) -> str:
    """As people write it: no point behind whole numbers, and no powers of ten."""
    return str(int(number) if isinstance(number, float) and number.is_integer() else number)
