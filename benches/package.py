"""What comparisons share that call pgdyno itself: its errors in the words of this folder."""

from __future__ import annotations

from collections.abc import Callable

from measure import Failure, exit_code

from pgdyno.drive.result import Driven
from pgdyno.model.errors import PgdynoError
from pgdyno.model.plan import Target


def package_exit_code(measure: Callable[[], None]) -> int:
    """As `exit_code`, the package's errors among those that have a message."""

    def compare() -> None:
        try:
            measure()
        except PgdynoError as error:
            raise Failure(error.fact, error.hint or "") from error

    return exit_code(compare)


def target_of(bindir: str | None) -> Target:
    """An installed PostgreSQL by its programs; None: the embedded one."""
    return Target("installed", bindir=bindir) if bindir else Target("embedded")


def require_complete(driven: Driven, what: str, hint: str) -> None:
    """Refuse a window whose load failed, or did nothing.

    Raises:
        Failure: It did.
    """
    if driven.error is not None or driven.outcome != "complete" or not driven.transactions:
        why = driven.error or f"{driven.transactions} transactions, outcome {driven.outcome}"
        raise Failure(f"{what}: {why}", hint)
