"""A crashed cluster made a standby of a running primary, by what differs from it.

own WAL read -> primary in backup mode, its WAL read -> what differs fetched, journalled -> written

It is for a primary whose standby was promoted when it lost power, and for a standby that lost
power: no crash recovery of it is run, which torn pages would break or mislead. What may differ from
the primary are blocks that the WAL of either names since they were alike for the last time on the
disk; these, and all that is no table or index, is copied as a base backup would. Redo begins where
that backup does. Nothing is written before all of it is there and in the journal; whatever breaks
it off, the next call throws away a journal that was not whole, or carries out one that was.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pgdyno.folders import Folder, failing, scratch
from pgdyno.guard import journal
from pgdyno.guard.blocks_in_wal import BlocksInWal, checkpoint_before, first_of
from pgdyno.guard.closing import close_and_open, closed_by
from pgdyno.guard.copying import Copier
from pgdyno.guard.journal import Step
from pgdyno.guard.leader import Backup, Leader, LeaderFacts, chunks_of
from pgdyno.guard.timelines import lines_of, own_lines
from pgdyno.guard.tree import COPIED, files_below, relation_of, require_sizes, trees_of
from pgdyno.guard.writing import Still, unasked, write_new
from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.model.lsn import lsn_of
from pgdyno.model.repair import SESSIONS, RedoBegin, RejoinReport
from pgdyno.model.wording import listed, plural
from pgdyno.pages.files import text_of
from pgdyno.pages.segment_names import is_segment, place_name, without_timeline
from pgdyno.pages.wal import WalRange

LABEL = "backup_label"
_SIGNAL, _SETTINGS = "standby.signal", "postgresql.auto.conf"
_NOT_OURS = ("recovery.signal", "tablespace_map")  # they would lead recovery elsewhere
_MINIMAL = 0
_WHOLE = "Copy every file, as a new base backup would: --whole."


@dataclass(frozen=True, slots=True)
class RejoinAsked:
    """How a cluster is to be made a standby."""

    follow: str = ""  # its primary_conninfo; empty: as it is configured
    slot: str = ""  # its primary_slot_name, which keeps WAL from now on; empty: as it is configured
    sessions: int = SESSIONS  # that fetch side by side
    whole: bool = False  # copy every file, whatever WAL says
    dry_run: bool = False


@dataclass(slots=True)
class _Told:
    """What was found of the two so far."""

    begin: RedoBegin
    facts: LeaderFacts
    fork_lsn: str | None
    named: BlocksInWal | None = None  # None: every file is copied
    end_lsn: str | None = None  # of the crashed cluster's WAL; None: it was not read
    alike_lsn: str = ""  # up to here the primary's WAL is the same
    backup_lsn: str = ""


def rejoin(
    data: Folder,
    begin: RedoBegin,
    source: Connection,
    asked: RejoinAsked,
    journals: Folder,
    *,
    still: Still = unasked,
    on_event: Callable[[str], None] = lambda _: None,
) -> RejoinReport:
    """Make a crashed cluster a standby of a running primary.

    Args:
        data: Its data directory; no server runs on it.
        begin: What it says of itself.
        source: The primary: its promoted standby, or, of a standby, its primary.
        asked: How.
        journals: Where journals of this cluster lie; only this user can read it.
        still: See `write_new`.
        on_event: Told what is done.

    Raises:
        TargetError: It cannot be done, or may not; nothing of it was changed then, or what was
            begun is finished by the next call.
    """
    began = time.monotonic()
    if found := _finished(data, begin, journals, asked, still, on_event):
        return replace(found, took_s=time.monotonic() - began)
    if begin.wal_level == _MINIMAL:
        raise TargetError(
            "the cluster has wal_level = minimal: what bulk loads wrote is in no WAL",
            "Make a new copy: pg_basebackup.",
        )
    with Leader(source) as leader, scratch(journals.path, "wal-") as room:
        facts = leader.known(begin)
        fork = _fork(data, begin, facts)
        _require_spaces(data, leader)
        leader.keep_wal(asked.slot, facts.flush_lsn)
        told = _Told(begin, facts, fork)
        if not asked.whole:
            on_event("reading the WAL")
            told.named = BlocksInWal(facts.version)
            _read_own(data, told)
            _fetch_wal(leader, room, told, facts.flush_lsn)
        on_event("waiting for a checkpoint of the primary")
        with leader.backing_up() as backup_lsn:
            told.backup_lsn = backup_lsn
            if told.named is not None:
                _fetch_wal(leader, room, told, backup_lsn)
                wanted = WalRange(told.alike_lsn, backup_lsn, facts.timeline)
                with _or_whole():
                    told.named.read(room.path, wanted, "primary")
                _require_no_doubt(told.named)
            report = _copied(data, journals, leader, told, asked, still, on_event)
    return replace(report, took_s=time.monotonic() - began)


def require_not_started(
    data: Folder, begin: RedoBegin, folder: Folder, head: journal.JournalHead
) -> None:
    """Refuse to take back a rejoin after which the server was started.

    Raises:
        TargetError: It was, or another copy was made since.
    """
    if not _is_since(data, begin, folder, head):
        raise TargetError(
            f"the server on {data.path} was started since journal {folder.path} was carried out",
            "What the journal keeps is of no use to it any more.",
        )


def _is_since(data: Folder, begin: RedoBegin, folder: Folder, head: journal.JournalHead) -> bool:
    """Whether no server was started since a journal became whole."""
    not_begun = head.state == "whole" and begin.redo_lsn == head.redo_lsn
    return not_begun or closed_by(data) == journal.REJOIN or _is_as_written(data, folder, head)


def require_no_rejoin(data: Folder) -> None:
    """Refuse data that are half of a crashed cluster's and half of a primary's.

    Raises:
        TargetError: A rejoin, or taking one back, was broken off.
    """
    if closed_by(data) == journal.REJOIN:
        raise TargetError(
            f"a rejoin of {data.path} was broken off", "Call it again, or `pgdyno guard undo`."
        )


def _is_as_written(data: Folder, folder: Folder, head: journal.JournalHead) -> bool:
    """Whether backup_label still is the one of this journal: a server that starts removes it."""
    for run, _, new in journal.runs_of(folder, head, Step.label):
        if run.path == LABEL:
            return data.has(LABEL) and text_of(data, LABEL) == bytes(new).decode()
    return False


def _finished(
    data: Folder, begin: RedoBegin, journals: Folder, asked: RejoinAsked, still: Still,
    on_event: Callable[[str], None],
) -> RejoinReport | None:  # fmt: skip
    """What an earlier call had written down, carried out unless that is not asked for.

    None: there is nothing.
    """
    found = journal.rejoining(journals, data)
    if found is None:
        return None
    folder, head = found
    with folder:
        if head.system_identifier != begin.system_identifier:
            raise TargetError(
                f"journal {folder.path} is of system {head.system_identifier}, the cluster is"
                f" system {begin.system_identifier}",
                "Remove it, if it is of a cluster that is no more.",
            )
        if not _is_since(data, begin, folder, head):
            return None
        is_due = head.state == "whole" or closed_by(data) == journal.REJOIN
        if is_due and not asked.dry_run:
            on_event(f"finishing what {folder.path} holds")
            write_new(data, folder, head, still)
    return RejoinReport(
        "would finish" if is_due and asked.dry_run else "finished",
        begin, None, None, begin.timeline, head.end_lsn, False, 0, head.blocks, 0, 0,
        (), 0, 0.0, str(folder.path),
    )  # fmt: skip


# -- what is known of the two --------------------------------------------------------------------


def _fork(data: Folder, begin: RedoBegin, facts: LeaderFacts) -> str | None:
    """Where the primary's timeline left the crashed cluster's; None: it is the same one."""
    if facts.timeline == begin.timeline:
        if begin.is_standby:
            return None
        raise TargetError(
            f"the primary is on timeline {facts.timeline}, as the crashed cluster is: it is no"
            " promoted standby of it",
            "Promote the standby with pg_promote; if it was made a primary without, make a new"
            " copy: pg_basebackup.",
        )
    fork = facts.fork_from(begin.timeline)
    theirs, ours = lines_of(facts.history), own_lines(data, begin.timeline)
    if fork is None or theirs[: len(ours)] != ours:
        raise TargetError(
            f"timeline {facts.timeline} of the primary does not come from timeline"
            f" {begin.timeline} of the crashed cluster",
            "It follows another primary: make a new copy, by pg_basebackup.",
        )
    return fork


def _require_spaces(data: Folder, leader: Leader) -> None:
    """Refuse tablespaces of which it is not known where they belong on this machine."""
    with data.into("pg_tblspc") as folder:
        ours = set(folder.names())
    theirs = leader.spaces()
    if missing := sorted(theirs - ours):
        raise TargetError(
            f"the primary has tablespaces that the crashed cluster does not have:"
            f" {listed(missing)}",
            f"Make a folder for each, and a link to it in {data.path}/pg_tblspc.",
        )
    if extra := sorted(ours - theirs):
        raise TargetError(
            f"the crashed cluster has tablespaces that the primary does not have: {listed(extra)}",
            f"Remove their links from {data.path}/pg_tblspc.",
        )


def _read_own(data: Folder, told: _Told) -> None:
    """Read the crashed cluster's WAL since all of both were alike on its disk."""
    begin, fork, named = told.begin, told.fork_lsn, told.named
    assert named is not None
    with _or_whole():
        start = _start(data, begin, fork)
        end = named.read(data.path, WalRange(start, None, begin.timeline), "crashed cluster")
    told.end_lsn = end
    told.alike_lsn = end if fork is None else first_of([end, fork])
    if fork is None:
        return
    if lsn_of(end) < lsn_of(fork) and not begin.is_standby:
        raise TargetError(
            f"the crashed cluster's WAL ends at {end}, the primary has it up to {fork}",
            f"The crashed disk lost WAL that it had said to be durable. {_WHOLE}",
        )
    if lsn_of(end) > lsn_of(fork) and not (begin.has_checksums or begin.logs_hints):
        raise TargetError(
            f"the crashed cluster went on to {end} after the fork at {fork}, without checksums and"
            " wal_log_hints: hints of transactions that are no more are named by no WAL",
            _WHOLE,
        )


def _start(data: Folder, begin: RedoBegin, fork: str | None) -> str:
    """Where WAL is read from: what came before is on the disk, and the same on both.

    A checkpoint after the fork will not do. Hints that were set after the fork may be of
    transactions that the primary does not have, and WAL need not name their pages again after that.
    """
    if fork is None or lsn_of(begin.checkpoint_lsn) < lsn_of(fork):
        return begin.redo_lsn
    place = checkpoint_before(data.path, fork, begin.timeline)
    if place is None:
        raise TargetError(
            f"the crashed cluster's WAL does not go back to the checkpoint before the fork at"
            f" {fork}",
            _WHOLE,
        )
    return first_of([place, begin.redo_lsn])


@contextmanager
def _or_whole() -> Iterator[None]:
    """Errors of WAL that is missing, with what can be done all the same."""
    try:
        yield
    except TargetError as error:
        raise TargetError(error.fact, _WHOLE) from error


def _require_no_doubt(named: BlocksInWal) -> None:
    if named.doubts:
        raise TargetError(listed(list(named.doubts)), _WHOLE)


def _fetch_wal(leader: Leader, room: Folder, told: _Told, to_lsn: str) -> None:
    """Bring the primary's segments here; the latest one again, which went on since.

    Those before the slot are whole, and go with the checkpoint that a backup begins with.
    """
    from_lsn, size = told.alike_lsn, told.begin.wal_segment_bytes
    have = set(room.names())
    latest = max(map(without_timeline, filter(is_segment, have)), default="")
    how = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    segments, histories = leader.wal_files(from_lsn, to_lsn, size)
    for name in (*segments, *histories):
        if name in have and without_timeline(name) != latest:
            continue
        with failing(f"write {room.path / name}"):
            handle = os.open(name, how, 0o600, dir_fd=room.handle)
        with os.fdopen(handle, "wb") as file, failing(f"write {room.path / name}"):
            for _, piece in leader.raw(list(chunks_of(f"pg_wal/{name}", size))):
                file.write(piece or b"")


# -- the copy ------------------------------------------------------------------------------------


def _copied(
    data: Folder, journals: Folder, leader: Leader, told: _Told, asked: RejoinAsked, still: Still,
    on_event: Callable[[str], None],
) -> RejoinReport:  # fmt: skip
    """Everything that differs, in a journal, and on the disk unless that is not asked for."""
    begin = told.begin
    local = {path: size for top in COPIED for path, size in files_below(data, top).items()}
    trees = trees_of(leader.tree(COPIED), local, told.facts.version)
    require_sizes(trees.source, begin)
    with journal.new(journals, journal.REJOIN) as (folder, writer):
        copier = Copier(data, begin, told.backup_lsn, trees, writer)
        blocks = copier.blocks_wanted(told.named)
        _require_room(journals, copier, blocks)
        wanted = list(copier.wanted(told.named))
        close_and_open(data, writer, journal.REJOIN, begin.major)
        on_event(f"fetching {plural(blocks, 'block', thousands=True)}")
        copier.take_relations(leader, wanted, asked.sessions)
        copier.take_files(leader)
        backup = leader.stop_backup(told.backup_lsn)
        kept = _take_wal(copier, leader, told.facts.timeline, backup)
        slots = _clear(data, copier, told, kept)
        copier.put(LABEL, backup.label.encode(), Step.label)
        if not begin.is_standby:
            _follow(data, copier, asked)
        report = RejoinReport(
            "would rejoin", begin, told.end_lsn, told.fork_lsn, told.facts.timeline,
            told.backup_lsn, told.named is None, 0 if told.named is None else told.named.count,
            copier.blocks, len(copier.files), len(trees.removed), slots, copier.fetched_bytes,
            0.0, None,
        )  # fmt: skip
        if asked.dry_run:
            return report
        head = writer.seal(journal.head_for(begin, told.backup_lsn, data))
        on_event(f"writing {plural(head.runs, 'run', thousands=True)} of bytes")
        write_new(data, folder, head, still)
        return replace(report, outcome="rejoined", journal=str(folder.path))


def _require_room(journals: Folder, copier: Copier, blocks: int) -> None:
    fetched = 2 * copier.begin.block_bytes * blocks
    trees = copier.trees
    removed = sum(trees.local[path] for path in trees.removed)
    others = 2 * sum(bytes_ for path, bytes_ in trees.source.items() if relation_of(path) is None)
    wal = sum(files_below(copier.data, "pg_wal").values())
    journal.require_room(journals, fetched + removed + others + wal)


def _clear(data: Folder, copier: Copier, told: _Told, kept: Container[str]) -> tuple[str, ...]:
    """Take out WAL and slots of before, and what would lead recovery elsewhere; the slots' names.

    Segments behind the WAL's end are names that wait to be written again: nobody asks for them.
    """
    size = told.begin.wal_segment_bytes
    last = "" if told.end_lsn is None else place_name(lsn_of(told.end_lsn), size)
    for path in files_below(data, "pg_wal"):
        name = path.removeprefix("pg_wal/")
        if name in kept:
            continue
        if last and is_segment(name) and without_timeline(name) > last:
            copier.drop(path, Step.clearing)
        else:
            copier.remove(path, Step.clearing)
    slots = files_below(data, "pg_replslot")
    for path in (*slots, *_NOT_OURS):
        copier.remove(path, Step.files)
    return tuple(sorted({path.split("/")[1] for path in slots}))


def _take_wal(copier: Copier, leader: Leader, timeline: int, backup: Backup) -> Container[str]:
    """The WAL from where redo begins to where it is consistent, and the histories; their names."""
    size, ends = copier.begin.wal_segment_bytes, (backup.begin_lsn, backup.stop_lsn)
    segments, histories = leader.wal_files(*ends, size)
    mine = [name for name in segments if name.startswith(f"{timeline:08X}")]
    first, last = (place_name(lsn_of(lsn), size) for lsn in ends)
    places = [without_timeline(name) for name in mine]
    if not places or places[0] != first or places[-1] < last:
        raise TargetError(
            f"the primary's WAL from {backup.begin_lsn} to {backup.stop_lsn} is not there any more",
            "Does max_slot_wal_keep_size allow for so much?",
        )
    copier.take_wal(leader, mine)
    for name in histories:
        if (history := leader.whole(f"pg_wal/{name}")) is not None:
            copier.put(f"pg_wal/{name}", history, Step.wal)
    return {*mine, *histories}


def _follow(data: Folder, copier: Copier, asked: RejoinAsked) -> None:
    """Whom it follows, and that it is a standby."""
    given = {"primary_conninfo": asked.follow, "primary_slot_name": asked.slot}
    lines = "".join(f"{name} = {_quoted(value)}\n" for name, value in given.items() if value)
    if lines:
        before = text_of(data, _SETTINGS) if data.has(_SETTINGS) else ""
        for name, value in given.items():
            if value:
                before = re.sub(rf"^{name}\s*=.*\n?", "", before, flags=re.MULTILINE)
        if before and not before.endswith("\n"):
            before += "\n"
        copier.put(_SETTINGS, (before + lines).encode(), Step.settings)
    copier.put(_SIGNAL, b"", Step.settings)


def _quoted(value: str) -> str:
    """As a configuration file has it."""
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
