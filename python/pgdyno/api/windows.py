"""A window on a loaded database, without a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pgdyno.api.asked import Asked, workload_of
from pgdyno.api.databases import Database, connection_to
from pgdyno.api.kinds import KIND_COLUMNS, kind_row
from pgdyno.api.table import Table
from pgdyno.catalog.contract import require_release
from pgdyno.drive.driver import Driven
from pgdyno.experiment.window import drive_alone
from pgdyno.model.connection import Connection
from pgdyno.model.plan import Protocol
from pgdyno.model.progress import DriveProgress
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Workload
from pgdyno.stats.ceiling import ceiling_per_s, fitting
from pgdyno.stats.client_limit import ceiling_share, client_limit, load_of
from pgdyno.stats.finding import Answer, Clear, Finding, Unknown
from pgdyno.store.calibration import read_ceilings
from pgdyno.target.home import home
from pgdyno.target.host_facts import this_machine

_DRAIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Benched:
    """A driven window."""

    driven: Driven
    workload: Workload
    client: str  # whether the client was the limit, a sentence

    def kinds(self) -> Table:
        """A row for each kind of transaction: outcomes, response times."""
        return Table.of([kind_row(one) for one in self.driven.kinds], KIND_COLUMNS)

    def _repr_html_(self) -> str:
        return self.kinds()._repr_html_()


def bench(
    asked: Asked,
    database: Database,
    *,
    seconds: float = 30.0,
    warmup: float = 5.0,
    on_event: Callable[[DriveProgress], None] = lambda _: None,
) -> Benched:
    """Drive a loaded database for a while.

    Args:
        asked: What is driven, and how.
        database: Loaded with what the workload needs.
        seconds: The window.
        warmup: Before it, not counted.
        on_event: Told twice a second.

    Returns:
        What was measured, also where the driver gave up: see `Driven.error`.

    Raises:
        PlanError: Wishes do not fit each other, or a file cannot be read.
        CheckError: The database does not hold what the workload needs.
        DriveError: The driver failed.
        KeyboardInterrupt: Ctrl-C; nothing is left behind.
    """
    require_release()
    asked.refuse_strangers()
    connection = connection_to(database)
    workload, c_load = workload_of(asked, connection)
    protocol = Protocol(1, warmup, seconds, _DRAIN_S, False, 0.03, 0.95, Rung.D0)
    driven, idle_share = drive_alone(connection, workload, protocol, c_load, on_event, asked.bindir)
    return Benched(driven, workload, _client(driven, workload, idle_share, connection))


def _client(
    driven: Driven, workload: Workload, idle_share: float | None, connection: Connection
) -> str:
    # A ceiling is that of our own driver.
    known = read_ceilings(home()) if workload.engine == "pgdyno" else ()
    ceiling = fitting(known, this_machine(), workload.kind, workload.face, workload.connections)
    load = load_of(
        driven.client,
        host_idle_share=idle_share,
        server_on_host=connection.is_local,
        transactions_per_s=driven.transactions / driven.window_s,
        ceiling_per_s=None if ceiling is None else ceiling_per_s(ceiling, driven.client.threads),
    )
    share = ceiling_share(load)
    reached = "" if share is None else f"; {share:.0%} of the driver's ceiling on this machine"
    return client_sentence(client_limit(load), reached)


def client_sentence(answer: Answer, reached: str = "") -> str:
    """Whether the client was the limit, as a sentence with its reason.

    Args:
        answer: What was found.
        reached: A clause more.
    """
    match answer:
        case Finding():
            return f"The client was the limit: {answer.fact}{reached}. {answer.advice}"
        case Clear():
            return f"The client was not the limit: {answer.fact}{reached}."
        case Unknown():
            return f"Whether the client was the limit is not known: {answer.fact}{reached}."
