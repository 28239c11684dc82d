"""One tree of errors: a fact in lower case with its values, and a hint that is a sentence.

`cli.app.main` is the only place that turns one into text and an exit code.
"""

from __future__ import annotations


class PgdynoError(Exception):
    """A failure that the user can understand.

    Args:
        fact: What is the case, in lower case, with both values, without a full stop.
        hint: What may be done about it, as a sentence.
    """

    exit_code = 1

    def __init__(self, fact: str, hint: str | None = None) -> None:
        super().__init__(fact)
        self.fact = fact
        self.hint = hint

    def begin_with(self, whose: str) -> None:
        """Say whose it is, once that is known: `server db-1:5432`."""
        self.fact = f"{whose}: {self.fact}"
        self.args = (self.fact,)

    @property
    def line(self) -> str:
        """Fact and hint in one line, as a record keeps them."""
        return f"{self.fact} ({self.hint})" if self.hint else self.fact


class PlanError(PgdynoError):
    """The plan, or an option that changes it, cannot be carried out. Nothing was touched."""

    exit_code = 2


class TargetError(PgdynoError):
    """A PostgreSQL server or its binaries did not do what was asked."""

    exit_code = 3


class RefusedError(TargetError):
    """A server of ours did not start on its data, or a repair left them; its own words say why."""


class LostError(TargetError):
    """The server under test is no longer this run's; nothing more may be changed there."""


class StoppedError(LostError):
    """Somebody stopped the server, or ended this run's session there: no trial is to blame."""


class MachineError(TargetError):
    """Settings of this machine could not be put back: nothing more may be measured on it."""


class DriveError(PgdynoError):
    """The load driver or the loader failed."""

    exit_code = 4


class HostLostError(DriveError):
    """A host that the load comes from was not reached, or was lost: no stage is to blame."""


class CheckError(PgdynoError):
    """The database violates a consistency condition of its workload."""

    exit_code = 5


class StoreError(PgdynoError):
    """A run file cannot be read or written."""

    exit_code = 6


class Interrupted(PgdynoError):
    """The user stopped the run; finished trials are kept."""

    exit_code = 130
