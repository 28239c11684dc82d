"""What is looked at in a cluster that came back, besides its ledger: whether it contradicts itself.

Each says what is wrong in sentences; none: nothing is.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def has_checksums(cluster: Cluster) -> bool:
    """Whether pages have checksums."""
    with own_session(cluster.connection()) as session:
        row = session.execute("SHOW data_checksums").fetchone()
    return row is not None and row[0] == "on"


def checksums(cluster: Cluster, binaries: Binaries, user: OsUser) -> list[str]:
    """Every page of a cluster that was stopped in good order."""
    words = [binaries.program("pg_checksums"), "--check", "-D", cluster.data]
    return _failed("pg_checksums", words, user)


def _failed(name: str, words: list[object], user: OsUser) -> list[str]:
    done = run([str(word) for word in words], user=user, check=False, timeout_s=_HOURS_S)
    if done.code == 0:
        return []
    lines = f"{done.stderr}\n{done.stdout}".splitlines()
    said = " ".join(" ".join(line for line in lines if "NOTICE:" not in line).split())
    return [f"{name} ended with code {done.code}: {said[:_WORDS_MAX]}"]
