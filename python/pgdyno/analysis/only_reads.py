"""Whether a load only reads: then its server puts off none of its work, to checkpoint nor vacuum.

Known where the tables at both ends of the window tell that no row was changed, and next to no WAL
was written but by vacuum, which clears up what others left. One of them is not enough: sequences
and large objects are none of these tables, and with `full_page_writes = off` little WAL changes
many pages. A load that changes a few rows does not only read. What reading itself writes, marks of
finished transactions and pruned pages, is left over from the load of the data, and done once;
where it makes more than next to no WAL, it is not told from writes, and nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis.episodes import NS, episodes
from pgdyno.analysis.facts import Judgement
from pgdyno.analysis.snapshots import changes_rows
from pgdyno.model.run import SnapshotRows, TrialRecord, TrialResult
from pgdyno.stats.vacuum import WAL_MIN_BYTES_PER_S, taken

_WAL = "wal.bytes"


def only_reads(record: TrialRecord, snapshots: Sequence[SnapshotRows]) -> bool | None:
    """Whether the load of a finished trial only reads; None: it is not known.

    Args:
        record: The trial.
        snapshots: What was read at the ends of its window.
    """
    if record.result is None:
        return None
    changes = changes_rows(record, snapshots)
    written = _written_bytes(record.result)
    if changes is None or written is None:
        return None
    return not changes and next_to_no_wal(written, record.result.window_s)


def of_reads(judged: Judgement) -> Judgement:
    """What is said of the checkpoint cycle of a window whose load only reads."""
    if judged.verdict == "clear":
        return judged
    fact = "the load only reads: no checkpoint is due from what it does"
    return Judgement("clear", fact, None)


def next_to_no_wal(wal_bytes: float, seconds: float) -> bool:
    """Whether so little WAL was written that it is no part of what a load takes."""
    return wal_bytes < WAL_MIN_BYTES_PER_S * seconds


def _written_bytes(result: TrialResult) -> float | None:
    """WAL of the window without vacuum's, as far as the server's log tells that.

    Of ANALYZE, which writes little, it does not before 18.
    """
    if (written := result.deltas.get(_WAL)) is None:
        return None
    begin_s, end_s = (at / NS for at in result.window_ns)
    told = [one for one in episodes(result) if one.wal_bytes is not None]
    vacuum = taken(told, (begin_s, end_s)).wal_bytes
    return max(0.0, written - (vacuum or 0.0))
