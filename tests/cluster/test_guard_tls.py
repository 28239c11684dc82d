"""A repair and a rejoin over the network as they are meant: TLS, SCRAM, the documented rights."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import pgdyno
from pgdyno.model.errors import TargetError
from pgdyno.model.repair import RejoinReport, RepairReport
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.target.cluster import Cluster
from tests.cluster.authority import Authority, give_to_server
from tests.cluster.crashed_pair import OFF, Pair, content_of, crash, execute, pair_of, rows, torn
from tests.cluster.guarded import ROLE, grants
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.wide]
_TEST = Origin(OriginKind.PLAN, "a test")
HINTS = Setting("wal_log_hints", "on", _TEST)
SECRET = "a-secret-of-the-tests"
# Of the loopback, where no other server of this machine listens at PostgreSQL's port.
ADDRESS = f"127.{os.getpid() % 200 + 20}.7.{os.getpid() // 200 % 200 + 20}"
HBA = f"""\
local     all         all                       trust
local     replication all                       trust
hostssl   all         {ROLE}       127.0.0.1/32 scram-sha-256
"""
LISTENING = tuple(
    Setting(name, value, _TEST)
    for name, value in {
        "listen_addresses": ADDRESS,
        "ssl": "on",
        "password_encryption": "scram-sha-256",
    }.items()
)


@dataclass(frozen=True)
class Secure:
    """A pair whose standby is reached over the network, by the guard's role alone."""

    pair: Pair
    root: Path  # that signed the standby's certificate
    stranger: Path

    def conninfo(self, **others: str) -> str:
        words = {
            "host": ADDRESS, "port": "5432", "user": ROLE, "dbname": "postgres",
            "password": SECRET, "sslmode": "verify-full", "sslrootcert": str(self.root),
        }  # fmt: skip
        return " ".join(f"{name}={value}" for name, value in (words | others).items())

    def repair(self, **others: str) -> RepairReport:
        return pgdyno.Guard(self.pair.primary.data, self.conninfo(**others)).repair(
            journals=self.pair.journals
        )


@pytest.fixture
def secure(folder: Path) -> Iterator[Secure]:
    with pair_of("debian-15", folder, (*OFF, HINTS)) as pair:  # the embedded 18 has no TLS
        for statement in filter(str.strip, grants(15).split(";\n")):
            execute(pair.primary, statement)
        execute(pair.primary, f"ALTER ROLE {ROLE} PASSWORD '{SECRET}'")
        ours, others = Authority(folder, "ours"), Authority(folder, "others")
        pair.standby.stop(clean=True)
        data = pair.standby.cluster.data
        give_to_server(ours.issue("standby", f"IP:{ADDRESS}"), data)
        (data / "pg_hba.conf").write_text(HBA)
        pair.standby.start([*LISTENING, HINTS])
        yield Secure(pair, ours.root.crt, others.root.crt)


def rejoin(secure: Secure) -> RejoinReport:
    guard = pgdyno.Guard(secure.pair.primary.data, primary=secure.conninfo())
    return guard.rejoin(journals=secure.pair.journals, slot="kept")


def test_a_repair_by_the_documented_role(secure: Secure) -> None:
    pair = secure.pair
    content = crash(pair)
    blocks = torn(pair)
    refused = {
        "certificate verify failed": {"sslrootcert": str(secure.stranger)},
        "no encryption": {"sslmode": "disable"},
        "password authentication failed": {"password": "another-one"},
        "no pg_hba.conf entry": {"user": "postgres"},
        "does not match host name": {"host": f"localhost hostaddr={ADDRESS}"},
    }
    for reason, others in refused.items():
        with pytest.raises(TargetError, match=reason) as caught:
            secure.repair(**others)
        told = f"{caught.value.fact} {caught.value.hint}"
        assert not re.search(f"{SECRET}|another-one", told)

    done = secure.repair()

    assert done.outcome == "repaired"
    assert done.blocks_written >= len(blocks)
    files = [one for one in pair.journals.rglob("*") if one.is_file()]
    assert all(SECRET.encode() not in one.read_bytes() for one in files)
    pair.primary.start(OFF, recovers=True)
    assert pair.content() == content


def test_a_rejoin_by_the_documented_role(secure: Secure) -> None:
    pair, new = secure.pair, secure.pair.standby.cluster
    crash(pair)
    torn(pair)
    right = "EXECUTE ON FUNCTION pg_backup_start(text, boolean)"
    execute(new, "SELECT pg_promote()", f"REVOKE {right} FROM {ROLE}")
    execute(new, "SELECT pg_create_physical_replication_slot('kept', true)")
    with pytest.raises(TargetError, match="makes no slot that keeps its WAL"):
        pgdyno.Guard(pair.primary.data, primary=secure.conninfo()).rejoin(journals=pair.journals)
    with pytest.raises(TargetError, match=f"role {ROLE} may not do .*pg_backup_start"):
        rejoin(secure)
    execute(new, f"GRANT {right} TO {ROLE}", "UPDATE t SET v = v + 1 WHERE i % 7 = 0")

    assert rejoin(secure).outcome == "rejoined"

    follow = Setting("primary_conninfo", conninfo_of(new), _TEST)
    pair.primary.start([*OFF, follow, HINTS], recovers=True)
    until(lambda: content_of(pair.primary) == content_of(new), "it has all that the new one has")
    assert rows(pair.primary, "SELECT pg_is_in_recovery()") == [(True,)]


def conninfo_of(cluster: Cluster) -> str:
    at = cluster.connection()
    return f"host={at.host} port={at.port} user={at.user}"
