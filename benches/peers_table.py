"""Records and Markdown tables of `peers.py`: one driver in one round, medians, ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from measure import Spread, confidence, table

# Of a transaction: sessions are woken on their own CPU, or across; between is neither.
OWN_MAX = 0.15
CROSSING_MIN = 0.4

# Result field, title, digits, factor from the base unit.
COLUMNS = (
    ("nopm", "NOPM", 0, 1.0),
    ("tpm_total", "tpmTotal", 0, 1.0),
    ("client_cpu_s_per_transaction", "client CPU us/txn", 1, 1e6),
    ("server_cpu_s_per_transaction", "server CPU us/txn", 0, 1e6),
    ("wal_bytes_per_transaction", "WAL B/txn", 0, 1.0),
)


@dataclass(frozen=True, slots=True)
class Driver:
    """One tool under comparison."""

    name: str
    template: str
    database: str
    commits_per_transaction: float
    own: str | None  # regular expression; group 1 is the tool's own tpm


@dataclass(frozen=True, slots=True)
class Run:
    """One driver in one round."""

    driver: str
    round: int
    position: int
    command: str
    window_s: float
    nopm: float | None  # None: the database has no districts
    tpm_total: float
    own_tpm: float | None
    client_cpu_s_per_transaction: float
    server_cpu_s_per_transaction: float
    wal_bytes_per_transaction: float
    ipis_per_transaction: float
    checkpoints: int
    other_cpu_share: float
    exit_code: int | None  # negative: the signal that stopped it


def columns(runs: Sequence[Run]) -> list[tuple[str, str, int, float]]:
    """The figures that all runs have."""
    return [c for c in COLUMNS if all(getattr(run, c[0]) is not None for run in runs)]


def spreads(runs: Sequence[Run], name: str) -> dict[str, Spread]:
    """Median and extremes of each figure of a driver."""
    own = [run for run in runs if run.driver == name]
    return {field: Spread.of([getattr(run, field) for run in own]) for field, *_ in columns(runs)}


def ratios(runs: Sequence[Run], subject: str, peer: str) -> dict[str, Spread]:
    """Ratios subject / peer within each round that has both."""
    of: dict[tuple[str, int], Run] = {(run.driver, run.round): run for run in runs}
    rounds = [n for name, n in of if name == subject and (peer, n) in of]
    return {
        field: Spread.of(
            [getattr(of[subject, n], field) / getattr(of[peer, n], field) for n in rounds]
        )
        for field, *_ in columns(runs)
    }


def by_placement(runs: Sequence[Run], drivers: Sequence[Driver]) -> str:
    """What each driver reached where sessions were woken on their own CPU, and where not."""
    rows = []
    for driver in drivers:
        own = [run for run in runs if run.driver == driver.name]
        for title, chosen in (
            (f"up to {OWN_MAX:g}", [r for r in own if r.ipis_per_transaction <= OWN_MAX]),
            (f"from {CROSSING_MIN:g}", [r for r in own if r.ipis_per_transaction >= CROSSING_MIN]),
        ):
            cells = [driver.name, title, f"{len(chosen)} of {len(own)}"]
            for field, _, digits, factor in COLUMNS[1:4]:
                values = [getattr(run, field) * factor for run in chosen]
                cells.append(f"{median(values):,.{digits}f}" if values else "-")
            rows.append(cells)
    titles = [title for _, title, _, _ in COLUMNS[1:4]]
    return table(["driver", "IPIs/txn", "runs", *titles], rows)


def markdown(runs: Sequence[Run], drivers: Sequence[Driver]) -> str:
    """Both tables and what to know of them."""
    figures = columns(runs)
    head = [
        "driver",
        *(title for _, title, _, _ in figures),
        "own tpm",
        "others, share of CPU",
    ]
    rows = []
    for driver in drivers:
        found = spreads(runs, driver.name)
        told = [
            run.own_tpm for run in runs if run.driver == driver.name and run.own_tpm is not None
        ]
        other = max(run.other_cpu_share for run in runs if run.driver == driver.name)
        cells = []
        for field, _, digits, factor in figures:
            spread = found[field]
            cells.append(spread.times(factor).text(digits))
        rows.append(
            [driver.name, *cells, Spread.of(told).text(0) if told else "-", f"<= {other:.1%}"]
        )
    parts = [table(head, rows)]
    subject, *peers = [driver.name for driver in drivers]
    if peers:
        head = ["ratio", *(title for _, title, _, _ in figures)]
        pairs = [(peer, ratios(runs, subject, peer)) for peer in peers]
        parts.append(
            table(
                head,
                [
                    [f"{subject} / {peer}", *(found[field].text(2) for field, *_ in figures)]
                    for peer, found in pairs
                ],
            )
        )
    n = min(sum(run.driver == driver.name for run in runs) for driver in drivers)
    parts.append(
        f"Median (lowest-highest) of {n} rounds; the extremes enclose the median with"
        f" {confidence(n):.0%} confidence. tpmTotal: commits and rollbacks that the server counted"
        + "".join(
            f", divided by {driver.commits_per_transaction:g} for {driver.name}"
            for driver in drivers
            if driver.commits_per_transaction != 1
        )
        + f". Checkpoints in all windows: {sum(run.checkpoints for run in runs)}."
    )
    return "\n\n".join(parts)
