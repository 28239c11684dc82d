"""What is wrong with figures as such: mistyped metrics, copies, columns in another's place.

Pure functions on numbers, ours or those of an earlier report. Measured figures of two runs never
agree to the last digit, and the share of New-Orders follows from the mix.
"""

from __future__ import annotations

from collections.abc import Mapping

DIGITS_MIN = 3  # significant ones; shorter figures agree by chance
SHARE_TOLERANCE = 0.1  # relative, of New-Orders in a window of any length


def mistyped(nopm: float, tpm_total: float, share: float) -> str | None:
    """Say so if New-Orders and all transactions a minute do not fit the mix.

    Args:
        nopm: Committed New-Orders a minute.
        tpm_total: Transactions of all kinds a minute.
        share: Of New-Orders in the mix, from 0 to 1.
    """
    found = nopm / tpm_total
    if abs(found - share) <= SHARE_TOLERANCE * share:
        return None
    return (
        f"nopm {nopm:,.0f} is {found:.0%} of tpm_total {tpm_total:,.0f}, the mix has {share:.0%}"
        " of New-Orders"
    )


def repeated(figures: Mapping[str, float]) -> list[tuple[str, str, float]]:
    """Pairs of names whose figures agree to the last digit, as measured ones never do."""
    first: dict[float, str] = {}
    found = []
    for name, value in figures.items():
        digits = f"{value:.15g}".replace(".", "").strip("0")
        if len(digits) >= DIGITS_MIN and value in first:
            found.append((first[value], name, value))
        first.setdefault(value, name)
    return found


def misplaced(printed: Mapping[str, float], measured: Mapping[str, float]) -> dict[str, str]:
    """Columns of a printed row that hold what was measured elsewhere: column -> where."""
    owner = {round(value): name for name, value in measured.items()}
    return {
        name: owner[round(value)]
        for name, value in printed.items()
        if name in measured and round(value) != round(measured[name]) and round(value) in owner
    }
