"""Which views of a server's statistics began anew within a window, by when they last did.

A counter that was reset is seen to fall only where it has not outgrown meanwhile what it was. The
server keeps the moment of each view's last reset: snapshot `resets` has it at both ends. Of several
resets in a window the last is so known, and of others those that made a counter fall: how often a
view was reset, is told as the least that it can have been.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pgdyno.model.run import Cell, SnapshotRows

NS = 1e9
RESETS = "resets"
"""The snapshot: a row for each view, with when it was last reset, in seconds since the epoch."""
VIEW, MOMENT = "view", "reset_unix_s"
READ = "read_unix_s"  # when it was read, by the server's clock, of which the moments are

DATABASES = "pg_stat_database"
"""The driven databases; who resets one table or index resets the moment of its database."""
_VIEWS = {  # by how the names of their counters begin; views as 17 calls them
    "database.": DATABASES,
    "checkpoints.": "pg_stat_checkpointer",
    "bgwriter.": "pg_stat_bgwriter",
    "backend.": "pg_stat_bgwriter",
    "io.": "pg_stat_io",
    "pg_stat_io.": "pg_stat_io",
    "slru.": "pg_stat_slru",
    "wal.": "pg_stat_wal",
}
_NO_STATISTIC = "wal.bytes"  # a place in the WAL, which nothing resets


def began_anew(snapshots: Iterable[SnapshotRows]) -> frozenset[str]:
    """Views that were reset between the two looks; none where one look is lacking.

    Args:
        snapshots: Of a window, of one server.
    """
    looks = {one.at: _moments(one) for one in snapshots if one.name == RESETS}
    if "begin" not in looks or "end" not in looks:
        return frozenset()
    begin, end = looks["begin"], looks["end"]
    anew = {view for view, moment in end.items() if view in begin and begin[view] != moment}
    shared = end.keys() - {DATABASES}
    if shared and shared <= anew:
        anew |= end.keys()  # a crash does that, and leaves databases no moment at all
    return frozenset(anew)


def resets_ns(counter: str, snapshots: Iterable[SnapshotRows]) -> tuple[int, ...]:
    """When the view of a counter was last reset as its window began, and as it had ended.

    Args:
        counter: The name of its series.
        snapshots: Of the window, of one server.
    """
    found = set()
    for look in (one for one in snapshots if one.name == RESETS):
        moments, ahead_s = _moments(look), _ahead_s(look)
        view = view_of(counter)
        others = [one for one in moments.values() if isinstance(one, int | float)]
        at = moments.get(view)
        if isinstance(at, int | float):
            found.add(round((at - ahead_s) * NS))
        elif view in moments and others:  # never, but by a crash, which resets the others, too
            found.add(round((min(others) - ahead_s) * NS))
    return tuple(sorted(found))


def _ahead_s(look: SnapshotRows) -> float:
    """How far the server's clock is ahead of ours; 0 where the file does not tell, as before."""
    read_s = look.rows[0].get(READ) if look.rows else None
    return read_s - look.unix_ns / NS if isinstance(read_s, int | float) else 0.0


def _moments(snapshot: SnapshotRows) -> dict[str, Cell]:
    return {str(row[VIEW]): row[MOMENT] for row in snapshot.rows}


def counted_on(counter: str, anew: Collection[str]) -> bool:
    """Whether a series counted on through a window, as far as resets of its view tell.

    Args:
        counter: Its name.
        anew: Views that began anew.
    """
    return view_of(counter) not in anew


def view_of(counter: str) -> str:
    """The view that has a counter; empty: none does."""
    if counter == _NO_STATISTIC:
        return ""
    return next((view for begin, view in _VIEWS.items() if counter.startswith(begin)), "")
