"""What is looked at in a cluster that came back, besides its ledger: whether it contradicts itself.

Each says what is wrong in sentences; none: nothing is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from pgdyno.folders import Folder
from pgdyno.guard.relations import opened
from pgdyno.loader.consistency import check
from pgdyno.model.connection import Connection
from pgdyno.model.description import Description
from pgdyno.model.errors import CheckError
from pgdyno.model.wording import plural
from pgdyno.session import own_session
from pgdyno.shell import OsUser, run
from pgdyno.target.binaries import Binaries
from pgdyno.target.cluster import Cluster

_WORDS_MAX = 300
_HOURS_S = 7200.0
_AMCHECK_SINCE = 14
_CHECKSUMS = "SELECT current_setting('data_checksums'), current_setting('block_size')"
_DATABASES = "SELECT oid::text, datname::text, datallowconn FROM pg_database"
_PATHS = (
    "SELECT pg_relation_filepath(oid) FROM pg_class WHERE pg_relation_filepath(oid) IS NOT NULL"
)
_RELATION_FILE = re.compile(r"[0-9]+(_(fsm|vm|init))?(\.[0-9]+)?")
_BAD_PAGE = re.compile(
    r'checksum verification failed in file ".*?/?(?P<path>(base/[0-9]+|global)/[0-9]+)'
    r'(_(?P<fork>fsm|vm|init))?(\.[0-9]+)?", block'
)


@dataclass(frozen=True, slots=True)
class Summed:
    """Files of a cluster whose pages have checksums."""

    page_bytes: int
    known: frozenset[str]  # first file of each relation that a catalog names
    closed: frozenset[str]  # folders of databases that let nobody in: all their files are known


_HAS_VISIBILITY = "SELECT FROM pg_available_extensions WHERE name = 'pg_visibility'"
_WRONGLY_VISIBLE = """
SELECT * FROM (
  SELECT oid::regclass::text, (SELECT count(*) FROM pg_check_visible(oid)) AS seen,
         (SELECT count(*) FROM pg_check_frozen(oid)) AS frozen
  FROM pg_class WHERE relkind IN ('r', 'm', 't') AND relpersistence = 'p'
) AS one WHERE seen + frozen > 0 ORDER BY 1
"""


def conditions(databases: Sequence[Connection], described: Description) -> list[str]:
    """What the workload promises."""
    found = []
    for database in databases:
        try:
            for one in check(database, described.conditions):
                if not one.ok:
                    rows = plural(one.violations, "row contradicts", "rows contradict")
                    found.append(
                        f"Condition {one.number} ({one.title}) does not hold: {rows} it, e.g."
                        f" {one.sample}."
                    )
        except CheckError as error:
            found.append(f"{error.line}.")
    return found


def has_amcheck(binaries: Binaries) -> bool:
    """Whether this PostgreSQL has `pg_amcheck`."""
    return binaries.version_num >= _AMCHECK_SINCE * 10_000


def relations(cluster: Cluster, binaries: Binaries, user: OsUser) -> list[str]:
    """Every table and index of every database, and each index against its table."""
    if not has_amcheck(binaries):
        return []
    at = cluster.connection()
    words = ["--all", "--heapallindexed", "--install-missing", "-U", at.user, "-h", at.host,
             "-p", str(at.port)]  # fmt: skip
    return _failed("pg_amcheck", [binaries.program("pg_amcheck"), *words], user)


def readable(databases: Sequence[Connection], binaries: Binaries, user: OsUser) -> list[str]:
    """Everything can be dumped."""
    found = []
    for at in databases:
        words = ["-U", at.user, "-h", at.host, "-p", str(at.port), "-f", "/dev/null", at.database]
        found += _failed("pg_dump", [binaries.program("pg_dump"), *words], user)
    return found


def visibility(databases: Sequence[Connection]) -> list[str]:
    """What maps of visibility say of pages that all transactions see, or that are frozen.

    An index is read without its table where they say so: a wrong bit gives a wrong answer.
    """
    found = []
    for database in databases:
        with own_session(database) as session:
            if session.execute(_HAS_VISIBILITY).fetchone() is None:
                continue
            session.execute("CREATE EXTENSION IF NOT EXISTS pg_visibility")
            for table, seen, frozen in session.execute(_WRONGLY_VISIBLE).fetchall():
                rows = plural(max(seen, frozen), "row")
                found.append(
                    f"The visibility map of {table} in {database.database} is wrong for {rows}."
                )
    return found


def summed_files(cluster: Cluster) -> Summed | None:
    """What of a running server's files has checksums; None: its pages have none."""
    at = cluster.connection()
    with own_session(at) as session:
        row = session.execute(_CHECKSUMS).fetchone()
        assert row is not None
        if row[0] != "on":
            return None
        databases = session.execute(_DATABASES).fetchall()
    known = set()
    for _, name, _ in (one for one in databases if one[2]):
        with own_session(at.to(name)) as session:
            known |= {str(path) for (path,) in session.execute(_PATHS)}
    closed = frozenset(f"base/{oid}" for oid, _, is_open in databases if not is_open)
    return Summed(int(row[1]), frozenset(known), closed)


def checksums(
    cluster: Cluster, data: Folder, summed: Summed, binaries: Binaries, user: OsUser,
    *, maps: bool = True,
) -> list[str]:  # fmt: skip
    """Every page of a cluster that was stopped in good order.

    What PostgreSQL itself never looks at is left out: a part of a page at the end of a file, which
    a power cut may leave of one that was made longer, and files of no relation, which transactions
    leave that a crash ends. The parts are cut off, since `pg_checksums` reads no further.

    A torn page of a map is one that PostgreSQL expects: bits of visibility are cleared without the
    page's LSN, so that it may reach the disk before its WAL does; whoever reads such a page empties
    it with a warning, which says of no row more than is true (`vm_readbuf`, `fsm_readbuf`).

    Args:
        cluster: The cluster.
        data: Its data, which are thrown away.
        summed: See `summed_files`.
        binaries: Its installation.
        user: Who runs it.
        maps: Whether pages of maps are held to their checksums, as where all torn ones were to be
            repaired.
    """
    _cut_parts(data, summed.page_bytes)
    words = [str(binaries.program("pg_checksums")), "--check", "-D", str(cluster.data)]
    done = run(words, user=user, check=False, timeout_s=_HOURS_S)
    if done.code == 0:
        return []
    lines = f"{done.stderr}\n{done.stdout}".splitlines()
    errors = [line for line in lines if ": error: " in line]
    harmless = [line for line in errors if _is_harmless(line, summed, maps=maps)]
    if errors and len(harmless) == len(errors):
        return []
    return _told("pg_checksums", done.code, [one for one in lines if one not in harmless])


def _is_harmless(line: str, summed: Summed, *, maps: bool) -> bool:
    """Whether pg_checksums complains of a page of no relation, or of a map that is none of ours."""
    found = _BAD_PAGE.search(line)
    if found is None:
        return False
    if not maps and found["fork"] in ("vm", "fsm"):
        return True
    path = found["path"]
    return path not in summed.known and str(PurePath(path).parent) not in summed.closed


def _cut_parts(data: Folder, page_bytes: int) -> None:
    """Make files as long as the whole pages that they have."""
    with data.into("base") as base:
        for name in base.names():
            with base.into(name) as folder:
                _cut_parts_in(folder, page_bytes)
    with data.into("global") as folder:
        _cut_parts_in(folder, page_bytes)


def _cut_parts_in(folder: Folder, page_bytes: int) -> None:
    for name in folder.names():
        part = os.lstat(name, dir_fd=folder.handle).st_size % page_bytes
        if part and _RELATION_FILE.fullmatch(name):
            with opened(folder, name, writes=True) as handle:
                if handle is not None:
                    os.ftruncate(handle, os.fstat(handle).st_size - part)


def _failed(name: str, words: list[object], user: OsUser) -> list[str]:
    done = run([str(word) for word in words], user=user, check=False, timeout_s=_HOURS_S)
    if done.code == 0:
        return []
    return _told(name, done.code, f"{done.stderr}\n{done.stdout}".splitlines())


def _told(name: str, code: int, lines: Sequence[str]) -> list[str]:
    said = " ".join(" ".join(line for line in lines if "NOTICE:" not in line).split())
    return [f"{name} ended with code {code}: {said[:_WORDS_MAX]}"]
