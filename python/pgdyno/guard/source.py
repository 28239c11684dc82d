"""A standby as the source of pages: known, brought forward, held still, read.

It is asked in SQL alone, so that it may be another machine; its files are read below the buffers,
so that relations that no transaction sees and those that a dead one has locked are there as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self

import psycopg

from pgdyno.folders import Folder
from pgdyno.guard.answers import LONG_S, Answers, Limits, NotTaken, asking
from pgdyno.guard.columns import BYTES, FLAG, NUMBER, PLACE, TEXT, maybe
from pgdyno.guard.observe import NAME, OF_TARGET, TARGET
from pgdyno.guard.timelines import left_at, lines_of
from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.model.lsn import lsn_of
from pgdyno.model.repair import RedoBegin, RedoNeeds
from pgdyno.model.wording import plural
from pgdyno.pages.segment_names import history_name
from pgdyno.target.leftover_server import PID_FILE, PID_FILE_BYTES_MAX

_POLL_S = 0.1
_STILL_S = 1.0
_FED_PATIENCE_S = 30.0  # a standby looks for WAL each wal_retrieve_retry_interval, of 5 s
_SINCE_PAUSE_STATE = 140_000
_LOOKS_MAX = 4
_HISTORY_BYTES_MAX = 1 << 20
_RUN_BLOCKS_MAX = 128
_BALANCING = "load_balance_hosts"
_FACTS = """
SELECT current_setting('server_version_num')::int, pg_is_in_recovery(),
       (SELECT system_identifier::text FROM pg_control_system()),
       redo_lsn::text,
       greatest(timeline_id, min_recovery_end_timeline,
                (SELECT received_tli FROM pg_stat_wal_receiver)),
       min_recovery_end_timeline, min_recovery_end_lsn::text,
       pg_last_wal_replay_lsn()::text, pg_last_wal_receive_lsn()::text,
       current_setting('data_checksums') = 'on', current_setting('block_size')::int
FROM pg_control_checkpoint(), pg_control_recovery()
"""
_OF_FACTS = (
    NUMBER, FLAG, TEXT, PLACE, NUMBER, NUMBER, PLACE, maybe(PLACE), maybe(PLACE), FLAG, NUMBER,
)  # fmt: skip
_IDENTITY = """
SELECT (SELECT system_identifier::text FROM pg_control_system()), pg_is_in_recovery(),
       (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint
"""
_OF_IDENTITY = (TEXT, FLAG, NUMBER)
_PAGES = """
SELECT pg_read_binary_file(path, at, bytes, true)
FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS wanted (path, at, bytes)
"""
_SPARE_BYTES = 1 << 16  # in an answer, beside what was asked for
_PATIENCE_S = 60.0
_BYTES_PER_S_MIN = 1 << 16


@dataclass(frozen=True, slots=True)
class StandbyFacts:
    """What a standby says of itself."""

    version_num: int
    is_in_recovery: bool
    system_identifier: str
    redo_lsn: str  # of its last restartpoint
    timeline: int  # the latest that it received, or that its files tell of
    files_timeline: int  # of what it had replayed when it was last written down
    files_lsn: str  # up to here
    replay_lsn: str | None
    receive_lsn: str | None
    has_checksums: bool
    block_bytes: int


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes a server this one and no other, for as long as it runs."""

    system_identifier: str
    is_in_recovery: bool
    started_us: int  # its postmaster, since 1970: differs between any two standbys


@dataclass(frozen=True, slots=True)
class Wanted:
    """Blocks of a file that follow each other."""

    path: str
    first_block: int  # within the fork
    file_at: int  # bytes into the file
    blocks: int


def run_of(
    path: str, first_block: int, file_block: int, blocks: int, block_bytes: int
) -> Iterator[Wanted]:
    """Blocks that follow each other, in pieces that fit into an answer's row.

    Args:
        path: Of their file.
        first_block: Number of the first one within the fork.
        file_block: The same within the file.
        blocks: How many.
        block_bytes: Of each.
    """
    for done in range(0, blocks, _RUN_BLOCKS_MAX):
        count, at = min(_RUN_BLOCKS_MAX, blocks - done), (file_block + done) * block_bytes
        yield Wanted(path, first_block + done, at, count)


def batches(wanted: Sequence[Wanted], blocks_min: int) -> Iterator[Sequence[Wanted]]:
    """What is asked for at once: each but the last has so many blocks at least."""
    batch: list[Wanted] = []
    blocks = 0
    for one in wanted:
        batch.append(one)
        blocks += one.blocks
        if blocks >= blocks_min:
            yield batch
            batch, blocks = [], 0
    if batch:
        yield batch


class Source:
    """A session on the standby; closed where it is used as a context."""

    def __init__(self, connection: Connection) -> None:
        """Connect.

        Raises:
            TargetError: It does not let us in.
        """
        self.connection = connection
        with asking(connection):
            self.session = Answers(name=NAME, patience_s=_PATIENCE_S)
        try:
            with asking(connection):
                self.session.reach(connection)
                self.identity = Identity(*self.session.row(_IDENTITY, _OF_IDENTITY))
            there = self.session
            self._pinned = pinned(connection, there.host, there.address, there.port)
        except BaseException:
            self.session.close()
            raise

    def again(self) -> Source:
        """Another session on this very server, wherever names and lists of hosts lead by now.

        Raises:
            TargetError: It is gone, was started or promoted since, or another one answers for it.
        """
        other = Source(self._pinned)
        if other.identity == self.identity:
            return other
        other.session.close()
        raise TargetError(
            f"another server answers at {other.shown} than the one that was looked at: system,"
            f" recovery and start are {_shown(other.identity)}, expected {_shown(self.identity)}",
            "Name the server itself, not what stands for several; was it started meanwhile?",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def facts(self) -> StandbyFacts:
        """What it says of itself now.

        Raises:
            TargetError: It is gone, or its role may not ask.
        """
        with asking(self.connection):
            return StandbyFacts(*self.session.row(_FACTS, _OF_FACTS))

    @property
    def shown(self) -> str:
        """Where it is, without passwords."""
        return self.connection.shown()

    def require_alike(self, begin: RedoBegin, facts: StandbyFacts, what: str) -> None:
        """Refuse a server of another cluster or layout; `what` it should be.

        Raises:
            TargetError: It is.
        """
        pairs = [
            ("system identifier", facts.system_identifier, begin.system_identifier),
            ("major version", facts.version_num // 10_000, begin.major),
            ("bytes of a page", facts.block_bytes, begin.block_bytes),
        ]
        for name, theirs, ours in pairs:
            if theirs != ours:
                raise TargetError(
                    f"the {name} of the {what} is {theirs}, of the crashed cluster {ours}",
                    f"Name its own {what}; {self.shown} is another one.",
                )

    def require_of(self, begin: RedoBegin) -> StandbyFacts:
        """Refuse a server that is no standby of this cluster.

        Raises:
            TargetError: It was promoted or will be, or is of another cluster, timeline or layout.
        """
        facts = self.facts()
        self.require_alike(begin, facts, "standby")
        self._require_standby(facts)
        if facts.timeline > begin.timeline:
            raise _of_another(f"is on timeline {facts.timeline}", begin)
        with asking(self.connection):
            target = self.session.row_or_none(TARGET, OF_TARGET)
        if target is not None:
            raise TargetError(
                f"the standby has {target[0]} set: at its recovery target it would be promoted",
                "Take it out of its configuration, and restart it.",
            )
        return facts

    def require_data(self, data: Folder) -> None:
        """Refuse a data directory of this host that is not this server's.

        The file that a server makes when it starts is the same in both: its process, start and port
        stand there. Another host may have another cluster at the same path.

        Raises:
            TargetError: It is another one's, or no server runs there; or as `read`.
        """
        (theirs,) = self.read([Wanted(PID_FILE, 0, 0, PID_FILE_BYTES_MAX)], block_bytes=1)
        here = data.read(PID_FILE, data.facts.st_uid) if data.has(PID_FILE) else None
        there = None if theirs is None else theirs.decode(errors="replace")
        if here is None or here != there:
            raise TargetError(
                f"{data.path} is not the data directory of the standby at {self.shown}: its"
                f" {PID_FILE} tells of {_process(here)}, the standby's of {_process(there)}",
                "Name what `SHOW data_directory` says on the standby, if that is this host.",
            )

    def _require_standby(self, facts: StandbyFacts) -> None:
        if not facts.is_in_recovery:
            raise TargetError(
                f"the server at {self.shown} is no standby any more: it was promoted",
                "Make the crashed cluster its standby: `pgdyno guard rejoin`.",
            )

    def replayed_beyond(
        self, begin: RedoBegin, needs: RedoNeeds, patience_s: float, feed: Callable[[], None] | None
    ) -> StandbyFacts:
        """Wait until it has replayed the checkpoint that the crashed cluster's redo begins with.

        Args:
            begin: Where redo begins.
            needs: Where it ends.
            patience_s: Seconds without any progress after which it will not come.
            feed: Gives it the crashed cluster's WAL; None: it must have all it needs.

        Raises:
            TargetError: It does not come so far, or has WAL that the crashed cluster lost.
        """
        wanted, end = lsn_of(begin.checkpoint_lsn), lsn_of(needs.end_lsn)
        seen, since = -1, time.monotonic()
        with asking(self.connection):
            self.session.do("SELECT pg_wal_replay_resume()")
        while True:
            facts = self.facts()
            at = 0 if facts.replay_lsn is None else lsn_of(facts.replay_lsn)
            if at > end:
                raise TargetError(
                    f"the standby has replayed WAL up to {facts.replay_lsn}, the crashed cluster's"
                    f" ends at {needs.end_lsn}",
                    "The crashed disk lost WAL that it had said to be durable: promote the standby"
                    " instead.",
                )
            if at != seen:
                seen, since = at, time.monotonic()
            # It may have received a part of a record that nobody has whole: that is never replayed.
            still_s = time.monotonic() - since
            received = at if facts.receive_lsn is None else lsn_of(facts.receive_lsn)
            if at > wanted and (at >= received or still_s > _STILL_S):
                return facts
            if still_s > patience_s:
                if feed is None:
                    raise _behind(facts, begin, needs)
                feed()
                feed, since = None, time.monotonic()
                patience_s = max(patience_s, _FED_PATIENCE_S)
            time.sleep(_POLL_S)

    @contextmanager
    def held(
        self, begin: RedoBegin, lines: Sequence[tuple[int, str]], patience_s: float
    ) -> Iterator[StandbyFacts]:
        """Meanwhile it replays nothing, and its files hold all that came before redo begins.

        What they hold is of the crashed cluster's own history, at the end as at the beginning.

        Args:
            begin: Where redo begins.
            lines: Timelines that the crashed cluster's came from, and where each ended.
            patience_s: Seconds in which it has to stand still.

        Raises:
            TargetError: It does not stand still, keeps no restartpoint that is late enough, or has
                replayed what another primary wrote.
        """
        try:
            with asking(self.connection):
                self.session.do("SELECT pg_wal_replay_pause()")
            self._stand_still(patience_s)
            facts = self.facts()
            if lsn_of(facts.redo_lsn) < lsn_of(begin.redo_lsn):
                with asking(self.connection):
                    self.session.do("CHECKPOINT", patience_s=LONG_S)
                facts = self.facts()
            if lsn_of(facts.redo_lsn) < lsn_of(begin.redo_lsn):
                raise TargetError(
                    f"the standby's last restartpoint is of {facts.redo_lsn}, redo of the crashed"
                    f" cluster begins at {begin.redo_lsn}",
                    "A standby that refers to pages it lacks makes none: see its log, rebuild it.",
                )
            self._require_line(begin, lines)
            yield facts
            self._require_line(begin, lines)
        finally:
            if not self.session.closed:
                self._let_go()
            else:  # its session was given up or broke: it would stand still for ever
                with suppress(TargetError), self.again() as other:
                    other._let_go()

    def _let_go(self) -> None:
        # One that was promoted meanwhile has nothing to go on with.
        with asking(self.connection), suppress(psycopg.errors.ObjectNotInPrerequisiteState):
            self.session.do("SELECT pg_wal_replay_resume()")

    def _require_line(self, begin: RedoBegin, lines: Sequence[tuple[int, str]]) -> None:
        """Refuse a standby whose files hold what the crashed cluster did not write.

        Of what timeline the WAL is that it replayed tells nothing before it is written down. A
        checkpoint does that, also one that has nothing to flush; one that has, only up to itself.
        """
        for _ in range(_LOOKS_MAX):
            facts = self.facts()
            self._require_standby(facts)
            if lsn_of(facts.files_lsn) >= lsn_of(facts.replay_lsn or facts.files_lsn):
                break
            with asking(self.connection):
                self.session.do("CHECKPOINT", patience_s=LONG_S)
        else:
            raise TargetError(
                f"the standby has replayed WAL up to {facts.replay_lsn}, and wrote down"
                f" {facts.files_lsn}: it goes on replaying, though it was told to pause",
                "Did somebody else call pg_wal_replay_resume() there?",
            )
        timeline = facts.files_timeline
        left = left_at(timeline, facts.files_lsn, begin.timeline, lines)
        if left is not None:
            where = f", which the crashed cluster's left at {left}" if left else ""
            raise _of_another(
                f"has replayed WAL of timeline {timeline} up to {facts.files_lsn}{where}", begin
            )
        if timeline == begin.timeline and self._lines(timeline) not in (None, list(lines)):
            raise _of_another(f"has another history of timeline {timeline}", begin)

    def _lines(self, timeline: int) -> list[tuple[int, str]] | None:
        """Which timelines it says that one came from; None: it has no history of it."""
        if timeline == 1:
            return None
        path = f"pg_wal/{history_name(timeline)}"
        (text,) = self.read([Wanted(path, 0, 0, _HISTORY_BYTES_MAX)], block_bytes=1)
        return None if text is None else lines_of(text.decode(errors="replace"))

    def _stand_still(self, patience_s: float) -> None:
        """Wait until replay does."""
        deadline = time.monotonic() + patience_s
        if self.session.version >= _SINCE_PAUSE_STATE:
            while self._said("SELECT pg_get_wal_replay_pause_state()") != "paused":
                if time.monotonic() > deadline:
                    raise TargetError(
                        f"the standby goes on replaying {patience_s:.0f} s after it was told to"
                        " pause",
                        "See pg_stat_activity there: a startup process that waits for a lock or"
                        " a conflict does not pause.",
                    )
                time.sleep(_POLL_S)
            return
        seen = None
        while (at := self._said("SELECT pg_last_wal_replay_lsn()::text")) != seen:
            seen = at
            time.sleep(_STILL_S)

    def _said(self, query: str) -> str | None:
        with asking(self.connection):
            (said,) = self.session.row(query, (maybe(TEXT),))
        return None if said is None else str(said)

    def pages(self, wanted: Sequence[Wanted], block_bytes: int) -> Iterator[bytes]:
        """The same, where a file that is not there has no bytes.

        Raises:
            TargetError: As `read`.
        """
        for page in self.read(wanted, block_bytes):
            yield b"" if page is None else page

    def read(self, wanted: Sequence[Wanted], block_bytes: int) -> Iterator[bytes | None]:
        """The bytes of some blocks, in their order: fewer where the file ends, None without file.

        Raises:
            TargetError: It is gone, its role may not read, or it gives more bytes than asked for.
        """
        columns = (
            [one.path for one in wanted],
            [one.file_at for one in wanted],
            [one.blocks * block_bytes for one in wanted],
        )
        sizes, given = columns[2], 0
        all_bytes = sum(sizes) + _SPARE_BYTES * (len(wanted) + 1)
        limits = Limits(
            len(wanted), max(sizes, default=0) + _SPARE_BYTES, all_bytes,
            _PATIENCE_S + all_bytes / _BYTES_PER_S_MIN,
        )  # fmt: skip
        with asking(self.connection):
            for (row,) in self.session.rows(_PAGES, (maybe(BYTES),), columns, limits):
                if row is not None and len(row) > sizes[given]:
                    raise TargetError(
                        f"the server at {self.shown} gave {len(row)} bytes of"
                        f" {columns[0][given]}, asked for were {sizes[given]}",
                        "PostgreSQL gives no more than it is asked for: take nothing from it.",
                    )
                given += 1
                yield row
            if given < len(wanted):
                raise NotTaken(
                    f"the answer has {plural(given, 'row')}, and should have {len(wanted)}"
                )


def pinned(connection: Connection, host: str, address: str, port: int) -> Connection:
    """How to reach the server again that one of several hosts, or of several addresses, was.

    Args:
        connection: It may name several.
        host: Of the session that stands: the folder of a socket, or a name.
        address: That this name led to; empty: it is a socket.
        port: Of it.
    """
    mine = [
        one for one in connection.hosts if one.port == port and host in (one.host, one.hostaddr)
    ]
    # A name may stand there twice, with different addresses and passwords.
    mine = [one for one in mine if one.hostaddr == address] or mine
    given = {name: value for name, value in connection.parameters if name != _BALANCING}
    return replace(
        connection, host=host, hostaddr=address or None, port=port, others=(),
        password=mine[0].password if mine else connection.password,
    ).with_parameters(given)  # fmt: skip


def _shown(identity: Identity) -> str:
    role = "a standby" if identity.is_in_recovery else "a primary"
    started = datetime.fromtimestamp(identity.started_us / 1e6, UTC)
    return f"{identity.system_identifier}, {role}, {started:%Y-%m-%d %H:%M:%S.%f}"


def _process(pid_file: str | None) -> str:
    return "no server" if not pid_file else f"process {pid_file.splitlines()[0]}"


def _of_another(what: str, begin: RedoBegin) -> TargetError:
    return TargetError(
        f"the standby {what}, the crashed cluster is on timeline {begin.timeline}",
        "It follows another primary: make the crashed cluster a standby of that, by `pgdyno guard"
        " rejoin`, or name a standby that followed this one to its end.",
    )


def _behind(facts: StandbyFacts, begin: RedoBegin, needs: RedoNeeds) -> TargetError:
    return TargetError(
        f"the standby has replayed WAL up to {facts.replay_lsn}, and needs it beyond the checkpoint"
        f" at {begin.checkpoint_lsn}",
        f"Give it the crashed cluster's WAL up to {needs.end_lsn}: with --standby-data if it is on"
        " this host, else copy the segments into its pg_wal.",
    )
