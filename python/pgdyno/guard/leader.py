"""A running primary as the source of a copy: known, in backup mode, its files and WAL read.

It is asked in SQL alone, as a standby is. While it is in backup mode it writes images of whole
pages into its WAL, so that a page which is read while it is written is mended by replay.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from pgdyno.guard.answers import LONG_S, Limits, asking
from pgdyno.guard.columns import FLAG, NAME, NUMBER, PLACE, TEXT, TIMELINE, Column
from pgdyno.guard.relations import names_of
from pgdyno.guard.source import Source, Wanted, batches
from pgdyno.guard.timelines import lines_of
from pgdyno.model.errors import TargetError
from pgdyno.model.lsn import lsn_of
from pgdyno.model.repair import RedoBegin
from pgdyno.model.text import one_line
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import listed, plural
from pgdyno.pages.segment_names import (
    history_name,
    is_history,
    is_segment,
    place_name,
    without_timeline,
)

LABEL = "pgdyno guard rejoin"
CHUNK_BYTES = 1 << 20
FILES_MAX = 4_000_000
NAMES_BYTES_MAX = 512 << 20
"""Files and what their names take, which a primary may tell of: all of them are held in memory."""
_PATH_BYTES_MAX = 4096
_OF_NAMES = Limits(FILES_MAX + 1, 2 * _PATH_BYTES_MAX, FILES_MAX * _PATH_BYTES_MAX, LONG_S)
_BATCH_BYTES = 8 << 20
_STABLE_READS_MAX = 10
_SINCE_BACKUP_NAMES = 150_000
_FACTS = """
SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), pg_current_wal_flush_lsn()::text,
       (SELECT catalog_version_no FROM pg_control_system()),
       (SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size'),
       current_setting('wal_level'), current_setting('fsync') = 'on'
"""
_OF_FACTS = (TIMELINE, PLACE, NUMBER, NUMBER, TEXT, FLAG)
_TREE = """
WITH RECURSIVE tree (path, bytes, is_folder) AS (
  SELECT top, 0::bigint, true FROM unnest($1::text[]) AS top
  UNION ALL
  SELECT tree.path || '/' || name, facts.size, facts.isdir
  FROM tree, pg_ls_dir(CASE WHEN tree.is_folder THEN tree.path END, true, false) AS name,
       pg_stat_file(tree.path || '/' || name, true) AS facts)
SELECT path, bytes FROM tree WHERE NOT is_folder
"""
_SPACES = "SELECT name FROM pg_ls_dir('pg_tblspc', true, false) AS name"
_START = "SELECT pg_backup_start($1, true)::text"
_STOP = "SELECT lsn::text, labelfile FROM pg_backup_stop(false)"
_START_BEFORE = "SELECT pg_start_backup($1, true, false)::text"
_STOP_BEFORE = "SELECT lsn::text, labelfile FROM pg_stop_backup(false, false)"
_KEEP = "SELECT pg_create_physical_replication_slot($1, true, true)"
_SLOT = """
SELECT slot_type, coalesce((restart_lsn - '0/0'::pg_lsn)::bigint, -1)
FROM pg_replication_slots WHERE slot_name = $1
"""


@dataclass(frozen=True, slots=True)
class LeaderFacts:
    """What a primary says of itself."""

    timeline: int
    flush_lsn: str
    version: str  # the folder of relations in a tablespace, e.g. PG_18_202506291
    history: str  # of its timeline, as its file says it; empty: it is the first

    def fork_from(self, timeline: int) -> str | None:
        """Where its timeline, or one that it came from, left another one; None: it never did."""
        return dict(lines_of(self.history)).get(timeline)


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that ended."""

    begin_lsn: str
    stop_lsn: str
    label: str  # what belongs into backup_label


class Leader(Source):
    """A session on the primary; closed where it is used as a context."""

    def known(self, begin: RedoBegin) -> LeaderFacts:
        """Refuse a server that the crashed cluster cannot follow.

        Raises:
            TargetError: It is a standby, or of another cluster or layout, or loses what it wrote.
        """
        facts, where = self.facts(), self.shown
        self.require_alike(begin, facts, "primary")
        if facts.is_in_recovery:
            raise TargetError(
                f"the server at {where} is a standby, not a primary", "Name its primary."
            )
        if facts.has_checksums != begin.has_checksums:
            words = {True: "has checksums", False: "has none"}
            raise TargetError(
                f"the primary {words[facts.has_checksums]}, the crashed cluster"
                f" {words[begin.has_checksums]}",
                "Make a new copy: pg_basebackup.",
            )
        with asking(self.connection):
            row = self.session.row(_FACTS, _OF_FACTS)
        timeline, flush_lsn, catalogue, segment_bytes, wal_level, is_synced = row
        if segment_bytes != begin.wal_segment_bytes:
            raise TargetError(
                f"segments of WAL have {segment_bytes} bytes on the primary,"
                f" {begin.wal_segment_bytes} in the crashed cluster",
                "Make a new copy: pg_basebackup.",
            )
        if wal_level == "minimal" or not is_synced:
            raise TargetError(
                f"the primary has wal_level = {wal_level} and fsync {'on' if is_synced else 'off'}",
                "A standby needs replica, and what is copied has to be on its disk.",
            )
        name = f"pg_wal/{history_name(timeline)}"
        history = b"" if timeline == 1 else self.whole(name)
        if history is None:
            raise TargetError(
                f"the primary has no {name}", "It cannot tell what it came from: pg_basebackup."
            )
        version = f"PG_{begin.major}_{catalogue}"
        return LeaderFacts(timeline, flush_lsn, version, history.decode(errors="replace"))

    def keep_wal(self, slot: str, from_lsn: str) -> None:
        """See to it that WAL from a place on is kept, which a checkpoint would remove.

        Args:
            slot: A physical slot that keeps it; empty: one is made that goes with this session.
            from_lsn: The place.

        Raises:
            TargetError: There is no such slot, it keeps no WAL from there on, or none can be made.
        """
        if slot:
            self._require_slot(slot, from_lsn)
            return
        try:
            self.session.do(_KEEP, [f"pgdyno_{secrets.token_hex(6)}"])
        except psycopg.Error as error:
            said = " ".join(str(error).split())
            raise TargetError(
                f"the primary makes no slot that keeps its WAL meanwhile: {said}",
                "Name one that keeps it: --slot; or let the role make one: ALTER ROLE …"
                " REPLICATION.",
            ) from error

    def _require_slot(self, name: str, from_lsn: str) -> None:
        with asking(self.connection):
            row = self.session.row_or_none(_SLOT, (TEXT, NUMBER), [name])
        make = f"SELECT pg_create_physical_replication_slot('{name}', true)"
        if row is None:
            raise TargetError(f"the primary has no slot {name}", f"Make it: {make}.")
        kind, at = row
        if kind != "physical" or at < 0 or at > lsn_of(from_lsn):
            raise TargetError(
                f"slot {name} of the primary is {kind} and does not keep WAL from {from_lsn} on",
                f"Make one that does: {make}.",
            )

    @contextmanager
    def backing_up(self) -> Iterator[str]:
        """Meanwhile it is in backup mode; it leaves it with this session at the latest.

        Yields:
            Where redo of the copy begins.
        """
        query = _START
        if self.session.version < _SINCE_BACKUP_NAMES:
            query = _START_BEFORE
        with asking(self.connection):
            (begin_lsn,) = self.session.row(query, (PLACE,), [LABEL], patience_s=LONG_S)
        try:
            yield begin_lsn
        except BaseException:
            self.session.close()  # which ends the backup
            raise

    def stop_backup(self, begin_lsn: str) -> Backup:
        """End the backup.

        Raises:
            TargetError: It is gone.
        """
        query = _STOP
        if self.session.version < _SINCE_BACKUP_NAMES:
            query = _STOP_BEFORE
        with asking(self.connection):
            stop_lsn, label = self.session.row(query, (PLACE, TEXT), patience_s=LONG_S)
        return Backup(begin_lsn, stop_lsn, label)

    def tree(self, tops: Sequence[str]) -> dict[str, int]:
        """Files below some folders of the data directory, with their bytes.

        Raises:
            TargetError: It is gone, its role may not look, it tells of more files than are taken,
                or of one elsewhere: what it tells becomes names on this machine.
        """
        found: dict[str, int] = {}
        for path, bytes_ in self._told(_TREE, (NAME, NUMBER), [list(tops)]):
            if names_of(path)[0] not in tops:
                raise TargetError(
                    f"the primary tells of {one_line(path)}, asked for was what lies in"
                    f" {listed(list(tops))}",
                    "PostgreSQL's own functions tell of no such file: trust nothing that it says.",
                )
            found[path] = bytes_
        return found

    def spaces(self) -> set[str]:
        """Names of what lies in its `pg_tblspc`.

        Raises:
            TargetError: It is gone, its role may not look, or it tells of more than is taken.
        """
        return {name for (name,) in self._told(_SPACES, (NAME,))}

    def _told(
        self, query: str, columns: Sequence[Column], given: Sequence[Sequence[str]] = ()
    ) -> Iterator[tuple[Any, ...]]:
        """Rows that begin with a name, one by one: a whole answer may be more than memory holds."""
        files = bytes_ = 0
        with asking(self.connection):
            for row in self.session.rows(query, columns, given, _OF_NAMES):
                files, bytes_ = files + 1, bytes_ + len(row[0])
                if files > FILES_MAX or bytes_ > NAMES_BYTES_MAX:
                    raise _too_many(files, bytes_)
                yield row

    def raw(self, wanted: Sequence[Wanted]) -> Iterator[tuple[Wanted, bytes | None]]:
        """Bytes of files, where a block is a byte; None: there is no such file.

        Raises:
            TargetError: It is gone, or its role may not read.
        """
        for batch in batches(wanted, _BATCH_BYTES):
            yield from zip(batch, self.read(batch, block_bytes=1), strict=True)

    def whole(self, path: str) -> bytes | None:
        """A small file, as it is read twice in a row; None: there is none.

        Raises:
            TargetError: It is another one at each look; or as `raw`.
        """
        seen: bytes | None = b""
        for _ in range(_STABLE_READS_MAX):
            ((_, data),) = self.raw([Wanted(path, 0, 0, CHUNK_BYTES)])
            if data is None or data == seen:
                return data
            seen = data
        raise TargetError(f"{path} of the primary is another one at each look", "Try again.")

    def wal_files(
        self, from_lsn: str, to_lsn: str, segment_bytes: int
    ) -> tuple[list[str], list[str]]:
        """Names of its segments from one place to another, of every timeline, and of histories.

        Raises:
            TargetError: It is gone, or its role may not look.
        """
        first, last = (place_name(lsn_of(lsn), segment_bytes) for lsn in (from_lsn, to_lsn))
        names = sorted(path.removeprefix("pg_wal/") for path in self.tree(["pg_wal"]))
        segments = [name for name in names
                    if is_segment(name) and first <= without_timeline(name) <= last]  # fmt: skip
        return segments, [name for name in names if is_history(name)]


def _too_many(files: int, bytes_: int) -> TargetError:
    return TargetError(
        f"the primary tells of {plural(files, 'file', thousands=True)} at least, whose names have"
        f" {bytes_text(bytes_)}; taken are {FILES_MAX:,} and {bytes_text(NAMES_BYTES_MAX)} at most",
        "If so many are in its folders, make a new copy: pg_basebackup.",
    )


def chunks_of(path: str, bytes_: int) -> Iterator[Wanted]:
    """A whole file, in pieces."""
    for at in range(0, max(bytes_, 1), CHUNK_BYTES):
        yield Wanted(path, 0, at, min(CHUNK_BYTES, bytes_ - at))
