"""A window on a loaded database, without a plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from html import escape

from pgdyno.api.asked import Asked, workload_of
from pgdyno.api.bench_words import client_sentence, figures_said, open_ends
from pgdyno.api.databases import Database, connection_to
from pgdyno.api.interrupts import interruptible
from pgdyno.api.kinds import KIND_COLUMNS, kind_row
from pgdyno.api.notebook_line import with_line
from pgdyno.api.table import Table
from pgdyno.catalog.contract import default, require_release
from pgdyno.drive.driver import Driven
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, PgdynoError
from pgdyno.model.plan import Protocol
from pgdyno.model.progress import DriveProgress
from pgdyno.model.run import Series
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Workload
from pgdyno.stats.ceiling import ceiling_per_s, fitting
from pgdyno.stats.client_limit import ceiling_share, client_limit, load_of
from pgdyno.stats.finding import Unknown
from pgdyno.store.calibration import read_ceilings
from pgdyno.target.database_use import in_use
from pgdyno.target.home import home
from pgdyno.target.host_facts import this_machine
from pgdyno.trial.window import drive_alone

_DRAIN_S: float = default("DriveSpec", "drain_s")


@dataclass(frozen=True, slots=True)
class Benched:
    """A driven window."""

    driven: Driven
    workload: Workload
    client: str  # whether the client was the limit, a sentence

    def kinds(self) -> Table:
        """A row for each kind of transaction: outcomes, response times."""
        return Table.of([kind_row(one) for one in self.driven.kinds], KIND_COLUMNS)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The rates that were reached, and what they cost the client."""
        return tuple(figures_said(self.driven, self.workload))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the end of the window left open: requests without an answer, in numbers."""
        return tuple(open_ends(self.driven))

    def to_json(self) -> str:
        """All of it; a figure that is no one's headline is null."""
        driven, workload = self.driven, self.workload
        nopm = driven.nopm if workload.headline == "NOPM" else None
        figures = {"headline": workload.headline, "nopm": nopm, "tpm_total": driven.tpm_total,
                   "tps": driven.tps, "seed": workload.seed}  # fmt: skip
        series = [_columns(one) for one in driven.series]
        return json.dumps({**figures, **asdict(replace(driven, series=())), "series": series})

    def require(self) -> None:
        """Refuse a window that the driver gave up.

        Raises:
            DriveError: With its reason.
        """
        if self.driven.error:
            raise DriveError(self.driven.error)

    def _repr_html_(self) -> str:
        said = (*self.warnings, *self.sentences, self.client)
        return self.kinds()._repr_html_() + "".join(f"<p>{escape(one)}</p>" for one in said)


def _columns(series: Series) -> dict[str, object]:
    """A column, each value with the start of its second; see docs/guides/load-and-drive.md."""
    return {
        "name": series.name, "unit": series.unit, "kind": series.kind,
        "unix_ns": series.unix_ns.tolist(), "values": series.values.tolist(),
    }  # fmt: skip


@with_line
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
        What was measured, also where the driver gave up: see `Benched.require`.

    Raises:
        PlanError: Wishes do not fit each other, or a file cannot be read.
        CheckError: The database does not hold what the workload needs.
        TargetError: A run of another pgdyno has the server, or something the database alone.
        DriveError: The driver failed.
        Interrupted: Ctrl-C; the driver is stopped, and nothing is left behind.
    """
    require_release()
    asked.refuse_strangers()
    asked.require_windows(seconds, warmup)
    connection = connection_to(database)
    workload, c_load = workload_of(asked, connection)
    protocol = Protocol(1, warmup, seconds, _DRAIN_S, False, 0.03, 0.95, Rung.D0)
    with (
        in_use(connection, alone=False, databases=workload.databases),
        interruptible("stopped", "Nothing of the window is kept, and nothing is still running."),
    ):
        driven, idle_share = drive_alone(
            connection, workload, protocol, c_load, on_event, asked.bindir
        )
    return Benched(driven, workload, _client(driven, workload, idle_share, connection))


def _client(
    driven: Driven, workload: Workload, idle_share: float | None, connection: Connection
) -> str:
    # A ceiling is that of our own driver.
    known = read_ceilings(home()) if workload.engine == "pgdyno" else ()
    ceiling = fitting(known, this_machine(), workload.kind, workload.face, workload.connections)
    try:
        load = load_of(
            driven.client,
            host_idle_share=idle_share,
            server_on_host=connection.is_local,
            transactions_per_s=driven.transactions / driven.window_s,
            ceiling_per_s=None
            if ceiling is None
            else ceiling_per_s(ceiling, driven.client.threads),
        )
    except PgdynoError as error:  # of pgbench's process nobody looked near the ends of the window
        return client_sentence(Unknown(error.fact))
    share = ceiling_share(load)
    reached = "" if share is None else f"; {share:.0%} of the driver's ceiling on this machine"
    return client_sentence(client_limit(load), reached)
