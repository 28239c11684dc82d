"""A crashed cluster made whole: each block that redo reads becomes a standby's.

WAL read -> standby beyond the checkpoint, held -> fetched, judged, journalled -> written

Nothing is written before all of it is known, judged and in the journal, nor while a server could be
started. Whatever breaks a repair off, the next one of the cluster throws away a journal that was
not whole, or finishes one that was.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from pgdyno.folders import Folder
from pgdyno.guard import journal
from pgdyno.guard.answers import asking
from pgdyno.guard.closing import close_and_open, closed_by
from pgdyno.guard.feed import feed
from pgdyno.guard.fetch import fetched
from pgdyno.guard.judge import Judge, Tally, read_ahead
from pgdyno.guard.observe import life_of
from pgdyno.guard.relations import opened
from pgdyno.guard.source import Source, Wanted, run_of
from pgdyno.guard.timelines import own_lines
from pgdyno.guard.writing import Still, unasked, write_new
from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.model.guard import Life
from pgdyno.model.repair import PATIENCE_S, SESSIONS, RedoBegin, RedoNeeds, RepairReport
from pgdyno.model.wording import listed, plural
from pgdyno.pages.redo import Crashed, read_redo
from pgdyno.pages.repair import PageJudge

_MINIMAL = 0


@dataclass(frozen=True, slots=True)
class RepairAsked:
    """How a cluster is to be repaired."""

    sessions: int = SESSIONS  # that fetch side by side
    patience_s: float = PATIENCE_S  # for a standby that makes no progress
    dry_run: bool = False
    asks_whole: bool = False  # whether the standby must be known to have kept its power
    standby_life: Life | None = None  # in which its pages were whole; None: nobody wrote it down


def repair(
    data: Folder,
    begin: RedoBegin,
    source: Connection,
    asked: RepairAsked,
    journals: Folder,
    *,
    standby_data: Folder | None = None,
    still: Still = unasked,
    on_event: Callable[[str], None] = lambda _: None,
) -> RepairReport:
    """Repair a cluster that lost power while it wrote no full page images.

    Args:
        data: Its data directory; no server runs on it.
        begin: What it says of itself.
        source: Its standby.
        asked: How.
        journals: Where journals of this cluster lie; only this user can read it.
        standby_data: Its data directory, where it is on this host: it is given the crashed
            cluster's WAL if it lags.
        still: See `write_new`.
        on_event: Told what is done.

    Raises:
        TargetError: It cannot be repaired, or may not; nothing of it was changed then, or what was
            changed is finished by the next repair.
    """
    _require_primary(begin)
    on_event("reading the WAL")
    began = time.monotonic()
    crashed = read_redo(data)
    report = _nothing_done(crashed, time.monotonic() - began)
    if crashed.needs is None:
        return report
    if finished := _finished(data, journals, report, asked, still, on_event):
        return finished
    _require_repairable(crashed.begin, crashed.needs)
    tally = Tally()
    wanted = list(_present(data, crashed.needs, crashed.begin.block_bytes, tally))
    if not wanted:
        return replace(report, blocks_absent=tally.absent)
    journal.require_room(journals, 2 * _blocks(wanted) * crashed.begin.block_bytes)
    with journal.new(journals) as (folder, writer):
        with _held(data, crashed, source, standby_data, asked, on_event) as held:
            on_event(f"fetching {plural(_blocks(wanted), 'block', thousands=True)}")
            size = crashed.begin.block_bytes
            pages = PageJudge(
                size, crashed.needs.end_lsn, source_has_checksums=held.has_checksums,
                has_checksums=crashed.begin.has_checksums,
            )  # fmt: skip
            judge = Judge(data, size, pages, writer, tally)
            fetch_s = _fetch(held, wanted, judge, asked.sessions)
        report = replace(
            report, blocks_absent=tally.absent, blocks_zeroed=tally.zeroed,
            blocks_alike=tally.alike, blocks_written=writer.blocks,
            fetched_bytes=tally.fetched_bytes, standby_s=held.took_s, fetch_s=fetch_s,
        )  # fmt: skip
        # What was left closed, and of which there is no journal here, is opened all the same.
        if asked.dry_run or (writer.blocks == 0 and closed_by(data) is None):
            return replace(report, outcome="would repair" if writer.blocks else "nothing torn")
        close_and_open(data, writer, journal.REPAIR, crashed.begin.major)
        head = writer.seal(journal.head_for(crashed.begin, crashed.needs.end_lsn, data))
        on_event(f"writing {plural(head.blocks, 'block', thousands=True)}")
        write_s = write_new(data, folder, head, still)
    return replace(report, outcome="repaired", write_s=write_s, journal=str(folder.path))


def _nothing_done(crashed: Crashed, wal_s: float) -> RepairReport:
    begin, needs = crashed.begin, crashed.needs
    if needs is None:
        return RepairReport("not needed", begin, None, 0, 0, 0, 0, 0, 0, wal_s, 0.0, 0.0, 0.0, None)
    return RepairReport("nothing torn", begin, needs.end_lsn, needs.blocks, 0, 0, 0, 0, 0, wal_s,
                        0.0, 0.0, 0.0, None)  # fmt: skip


def _finished(
    data: Folder, journals: Folder, report: RepairReport, asked: RepairAsked, still: Still,
    on_event: Callable[[str], None],
) -> RepairReport | None:  # fmt: skip
    """What an earlier repair had written down, carried out; None: there is nothing."""
    unfinished = journal.unfinished(journals, report.begin, data)
    if unfinished is None:
        return None
    folder, head = unfinished
    report = replace(report, blocks_written=head.blocks, journal=str(folder.path))
    with folder:
        if asked.dry_run:
            return replace(report, outcome="would finish")
        on_event(f"finishing the repair of {folder.path}")
        write_s = write_new(data, folder, head, still)
        return replace(report, outcome="finished", write_s=write_s)


@dataclass(frozen=True, slots=True)
class _Held:
    """A standby that stands still."""

    standby: Source
    has_checksums: bool  # of its pages
    took_s: float  # until it was there


@contextmanager
def _held(
    data: Folder,
    crashed: Crashed,
    source: Connection,
    standby_data: Folder | None,
    asked: RepairAsked,
    on_event: Callable[[str], None],
) -> Iterator[_Held]:
    """The standby, held still where redo finds what it needs."""
    begin, needs = crashed.begin, crashed.needs
    assert needs is not None
    fed: Callable[[], None] | None = None
    began = time.monotonic()
    on_event("waiting for the standby")
    with Source(source) as standby:
        facts = standby.require_of(begin)
        if asked.asks_whole:
            _require_whole(standby, asked.standby_life)
        if standby_data is not None:
            standby.require_data(standby_data)
            fed = partial(feed, data, standby_data, begin, needs.end_lsn)
        standby.replayed_beyond(begin, needs, asked.patience_s, fed)
        with standby.held(begin, own_lines(data, begin.timeline), asked.patience_s):
            yield _Held(standby, facts.has_checksums, time.monotonic() - began)


def _fetch(held: _Held, wanted: Sequence[Wanted], judge: Judge, sessions: int) -> float:
    """Fetch blocks, and write down those that differ; returns the seconds."""
    began, size = time.monotonic(), judge.block_bytes
    soon, sums = partial(read_ahead, judge.data, size), held.has_checksums
    with closing(fetched(
        held.standby, wanted, size, sessions, judge.judged, soon, have_checksums=sums
    )) as found:  # fmt: skip
        judge.take(found)
    return time.monotonic() - began


def _require_whole(standby: Source, since: Life | None) -> None:
    """Refuse a standby that may have lost power itself."""
    if since is None:
        raise TargetError(
            "whether the standby lost power since the cluster was armed is not known: its boot id"
            " was not written down then",
            "If it did, both are torn, and neither can repair the other. If it is known to be"
            " whole: --accept standby-power.",
        )
    with asking(standby.connection):
        life = life_of(standby.session)
    if life.goes_on(since):
        return
    what = "machine" if life.tells_machine(since) else "server"
    raise TargetError(
        f"the standby's {what} was restarted since the cluster was armed: if it lost power as well,"
        " both are torn, and neither can repair the other",
        "Recover from a backup then. If it is whole, since its machine was shut down in good order,"
        " or it is another one: --accept standby-power.",
    )


def _require_primary(begin: RedoBegin) -> None:
    """Refuse a standby, also one that was stopped in good order: that flushes not all of it."""
    if begin.is_standby:
        raise TargetError(
            f"the cluster is a standby ({begin.state}), not a primary",
            "Repair it from its primary: `pgdyno guard rejoin`.",
        )


def _require_repairable(begin: RedoBegin, needs: RedoNeeds) -> None:
    if begin.wal_level == _MINIMAL:
        raise TargetError(
            "the cluster has wal_level = minimal: what bulk loads wrote is in no WAL",
            "Recover from a backup.",
        )
    if needs.custom_managers:
        raise TargetError(
            f"its WAL holds records of extensions ({listed(needs.custom_managers)}), of which it is"
            " not known what they change",
            "Fail over to the standby, and rebuild this cluster.",
        )


def _present(data: Folder, needs: RedoNeeds, block_bytes: int, tally: Tally) -> Iterator[Wanted]:
    """Blocks that are needed and that the disk has; a file is never made longer."""
    for file in needs.files:
        with opened(data, file.path, writes=False) as handle:
            there = 0 if handle is None else os.fstat(handle).st_size // block_bytes
        for first, count in file.runs:
            kept = max(0, min(count, file.first_block + there - first))
            tally.absent += count - kept
            yield from run_of(file.path, first, first - file.first_block, kept, block_bytes)


def _blocks(wanted: Sequence[Wanted]) -> int:
    return sum(one.blocks for one in wanted)
