"""What every intervention is: something that is turned on and off, and tells what it did."""

from __future__ import annotations

from typing import Protocol

from pgdyno.model.proof import Dose


class Intervention(Protocol):
    """A resource of a running server, made dearer or free and back again."""

    def turn(self, on: bool) -> None:
        """Begin or end it; returns when it works.

        Raises:
            PgdynoError: It could not be done.
        """
        ...

    def dose(self) -> Dose | None:
        """What it did until now, counted up; None: it does not tell."""
        ...


class Nothing:
    """Changes nothing: what its blocks differ by is noise."""

    def turn(self, on: bool) -> None:
        """See `Intervention`."""

    def dose(self) -> Dose | None:
        """See `Intervention`."""
        return None
