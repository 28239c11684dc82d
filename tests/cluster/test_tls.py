"""TLS as libpq has it, on a real server: what is checked of certificates, and what SCRAM adds."""

from __future__ import annotations

import json
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgdyno import _core
from pgdyno.model.connection import Connection
from pgdyno.target.conninfo import reach, resolve
from tests.cluster.authority import Authority, Certificate, give_to_server
from tests.cluster.conftest import cluster_apart
from tests.reachable import reachable_folder
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster
PASSWORD = "of the test"
HBA = """
local   all all                trust
hostssl certified certified 127.0.0.1/32 cert
hostssl all all 127.0.0.1/32   scram-sha-256
hostnossl all plain 127.0.0.1/32 scram-sha-256
"""
NOTE = """
INSERT INTO seen SELECT usename, ssl, version, client_dn IS NOT NULL
FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE pid = pg_backend_pid();
"""


@dataclass(frozen=True, slots=True)
class Secure:
    """A server with TLS, and the certificates around it."""

    admin: Connection
    data: Path
    port: int
    roots: Path
    strangers: Path  # another authority
    client: Certificate


@pytest.fixture(scope="module")
def secure() -> Iterator[Secure]:
    with cluster_apart("debian-15", "tcp") as cluster:
        for folder in reachable_folder("certificates"):
            ours, others = Authority(folder, "ours"), Authority(folder, "others")
            give_to_server(ours.issue("server", "DNS:localhost,IP:127.0.0.1"), cluster.data)
            client = ours.issue("certified", "DNS:client")
            (cluster.data / "root.crt").write_bytes(ours.root.crt.read_bytes())
            (cluster.data / "pg_hba.conf").write_text(HBA)
            admin = cluster.connection()
            with psycopg.connect(**admin.arguments(), autocommit=True) as session:
                for role in ("plain", "tester", "certified"):
                    session.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'".encode())
                    session.execute(f"CREATE DATABASE {role}".encode())
                session.execute("ALTER SYSTEM SET ssl = on")
                session.execute("ALTER SYSTEM SET ssl_ca_file = 'root.crt'")
            reload(admin)
            port = cluster.measured_connection().port
            yield Secure(admin, cluster.data, port, ours.root.crt, others.root.crt, client)


def reload(admin: Connection) -> None:
    """Have the server read its files again, and wait until new sessions know them."""
    with psycopg.connect(**admin.arguments(), autocommit=True) as session:
        row = session.execute("SELECT pg_conf_load_time(), pg_reload_conf()").fetchone()
    assert row is not None
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        with psycopg.connect(**admin.arguments()) as session:
            if session.execute("SELECT pg_conf_load_time()").fetchone() != row[:1]:
                return
    raise AssertionError("the server did not read its files again")


def drive(connection: Connection, text: str = NOTE, drain_s: float = 2.0) -> dict[str, Any]:
    """Let the driver's own sessions do something for a moment."""
    spec = {
        "version": 1,
        "workload": {"kind": "script", "scripts": [{"name": "note", "text": text}]},
        "connection": connection.spec(),
        "connections": 2, "terminals": 2, "threads": 1,
        "warmup_s": 0.0, "window_s": 0.1, "drain_s": drain_s, "allow_debug": True,
    }  # fmt: skip
    driver = _core.Drive(json.dumps(spec))
    driver.start()
    result: dict[str, Any] = json.loads(driver.result())
    return result


def seen(secure: Secure, conninfo: str, user: str = "tester") -> set[tuple[Any, ...]]:
    """What the server saw of the driver's sessions: TLS or not, its version, a certificate."""
    with psycopg.connect(**secure.admin.to(user).arguments(), autocommit=True) as session:
        session.execute("DROP TABLE IF EXISTS seen")
        session.execute("CREATE TABLE seen (usename name, ssl bool, version text, client bool)")
        session.execute("GRANT ALL ON seen TO public")
        defaults = f"port={secure.port} user={user} dbname={user} password='{PASSWORD}' "
        connection = resolve(defaults + conninfo)
        result = drive(connection)
        assert result["outcome"] == "complete"
        assert not result["errors"]
        # libpq comes to the same with the same parameters.
        psycopg.connect(**connection.arguments()).close()
        rows = session.execute("SELECT DISTINCT ssl, version, client FROM seen").fetchall()
    return set(rows)


def refusal(secure: Secure, conninfo: str, user: str = "tester") -> tuple[str, str]:
    """The driver's error and its hint; libpq refuses as well."""
    defaults = f"port={secure.port} user={user} dbname={user} password='{PASSWORD}' "
    connection = resolve(defaults + conninfo)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(**connection.arguments())
    with pytest.raises(_core.CoreError) as caught:
        drive(connection)
    _kind, fact, hint = caught.value.args
    assert PASSWORD not in fact
    return fact, hint


@contextmanager
def unwrapping(secure: Secure, protocols: list[str]) -> Iterator[int]:
    """A port where TLS begins with the first byte; what comes out goes to the server in plain."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(secure.client.crt, secure.client.key)
    if protocols:
        context.set_alpn_protocols(protocols)

    class Unwrap(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with (
                suppress(OSError),
                context.wrap_socket(self.request, server_side=True) as outer,
                socket.create_connection(("127.0.0.1", secure.port)) as inner,
            ):
                back = threading.Thread(target=pump, args=(inner, outer), daemon=True)
                back.start()
                pump(outer, inner)
                back.join(10)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Unwrap) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)


TLS13 = {(True, "TLSv1.3", False)}
PLAIN = {(False, None, False)}


def test_verify_full_checks_the_name(secure: Secure) -> None:
    roots = f"sslrootcert={secure.roots} sslmode=verify-full"
    assert seen(secure, f"host=localhost hostaddr=127.0.0.1 {roots}") == TLS13
    assert seen(secure, f"host=127.0.0.1 {roots}") == TLS13

    fact, hint = refusal(secure, f"host=elsewhere hostaddr=127.0.0.1 {roots}")

    assert f"TLS with elsewhere:{secure.port} (127.0.0.1) (sslmode=verify-full)" in fact
    assert "not valid for name" in fact
    assert "subjectAltName" in hint


def test_verify_ca_checks_the_authority_and_not_the_name(secure: Secure) -> None:
    elsewhere = "host=elsewhere hostaddr=127.0.0.1 sslmode=verify-ca"
    assert seen(secure, f"{elsewhere} sslrootcert={secure.roots}") == TLS13

    fact, hint = refusal(secure, f"{elsewhere} sslrootcert={secure.strangers}")

    assert "UnknownIssuer" in fact
    assert "sslrootcert" in hint


def test_require_checks_nothing_unless_there_is_a_root_certificate(secure: Secure) -> None:
    elsewhere = "host=elsewhere hostaddr=127.0.0.1 sslmode=require"
    assert seen(secure, elsewhere) == TLS13
    assert "UnknownIssuer" in refusal(secure, f"{elsewhere} sslrootcert={secure.strangers}")[0]


def test_prefer_takes_what_it_gets_and_allow_what_it_must(secure: Secure) -> None:
    assert seen(secure, "host=127.0.0.1") == TLS13
    assert seen(secure, "host=127.0.0.1 sslmode=allow") == TLS13
    assert seen(secure, "host=127.0.0.1 sslmode=allow", user="plain") == PLAIN
    # A certificate that is not trusted makes prefer fall back to plain text, where that is allowed.
    assert seen(secure, f"host=127.0.0.1 sslrootcert={secure.strangers}", user="plain") == PLAIN
    fact, _hint = refusal(secure, "host=127.0.0.1 sslmode=disable")
    assert "no encryption" in fact


def test_versions_are_limited(secure: Secure) -> None:
    host = "host=127.0.0.1 sslmode=require"
    assert seen(secure, f"{host} ssl_max_protocol_version=TLSv1.2") == {(True, "TLSv1.2", False)}


def test_direct_negotiation_needs_the_protocols_name(secure: Secure) -> None:
    """PostgreSQL 17 can do it; here something before the server unwraps TLS."""
    direct = "host=127.0.0.1 sslmode=require sslnegotiation=direct"
    with unwrapping(secure, ["postgresql"]) as port:
        assert seen(secure, f"{direct} port={port}", user="plain") == PLAIN
    with unwrapping(secure, []) as port:
        fact, hint = refusal(secure, f"{direct} port={port}", user="plain")
    assert "did not agree to sslnegotiation=direct" in fact
    assert "sslnegotiation=postgres" in hint


def test_what_is_abandoned_is_cancelled_over_tls_too(secure: Secure) -> None:
    with unwrapping(secure, ["postgresql"]) as port:
        connection = resolve(
            f"host=127.0.0.1 port={port} user=plain dbname=plain password='{PASSWORD}'"
            " sslmode=require sslnegotiation=direct"
        )
        result = drive(connection, "SELECT pg_sleep(600);", drain_s=0.1)
        assert result["kinds"][0]["run"]["unfinished"] == 2
        wait_for_silence(secure)


def wait_for_silence(secure: Secure) -> None:
    """Until nobody sleeps any more."""
    busy = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'"
    deadline = time.monotonic() + DEADLINE_S
    with psycopg.connect(**secure.admin.arguments(), autocommit=True) as session:
        while session.execute(busy).fetchall():
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_a_client_certificate_is_shown(secure: Secure) -> None:
    host = "host=127.0.0.1 sslmode=require"
    shown = f"{host} sslcert={secure.client.crt} sslkey={secure.client.key}"
    assert seen(secure, shown, user="certified") == {(True, "TLSv1.3", True)}
    fact, _hint = refusal(secure, host, user="certified")
    assert "valid client certificate" in fact


def test_scram_is_bound_to_the_channel(secure: Secure) -> None:
    host = "host=127.0.0.1 channel_binding=require"
    assert seen(secure, f"{host} sslmode=require") == TLS13
    assert seen(secure, "host=127.0.0.1 channel_binding=disable sslmode=require") == TLS13

    fact, hint = refusal(secure, f"{host} sslmode=disable", user="plain")

    assert "channel_binding is require" in fact
    assert "the session has no TLS" in fact
    assert "sslmode=require" in hint


@contextmanager
def serving(secure: Secure, certificate: Certificate) -> Iterator[None]:
    """Another certificate of the server, and its own again."""
    names = ("server.crt", "server.key")
    own = [(secure.data / name).read_bytes() for name in names]
    give_to_server(certificate, secure.data)
    reload(secure.admin)
    try:
        yield
    finally:
        for name, content in zip(names, own, strict=True):
            (secure.data / name).write_bytes(content)
        reload(secure.admin)


def test_a_certificate_of_version_1_is_taken_where_nothing_is_checked(secure: Secure) -> None:
    for folder in reachable_folder("old"):
        with serving(secure, Authority(folder, "old").issue("server", "")):
            assert seen(secure, "host=127.0.0.1 sslmode=require") == TLS13


def test_a_server_signed_by_itself_is_trusted_when_it_is_named(secure: Secure) -> None:
    for folder in reachable_folder("self"):
        own = Authority(folder, "self").root
        host = "host=127.0.0.1 sslmode=verify-ca"
        with serving(secure, own):
            assert seen(secure, f"{host} sslrootcert={own.crt}") == TLS13
            fact, hint = refusal(secure, f"{host} sslrootcert={secure.strangers}")
        assert "invalid peer certificate" in fact
        assert "signs itself must stand in sslrootcert" in hint


def test_the_command_line_goes_the_same_way(
    secure: Secure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    monkeypatch.setenv("PGSSLROOTCERT", str(secure.strangers))
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with pytest.raises(Exception, match="certificate verify failed"):
        reach(f"host=127.0.0.1 port={secure.port} user=tester")
