"""What libpq makes of a conninfo: lists of hosts, services, password files, variables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgdyno.model.connection import Connection
from pgdyno.model.errors import PlanError
from pgdyno.target.conninfo import hint_for, resolve


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and no variables of ours."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def spec_of(connection: Connection) -> dict[str, Any]:
    """What the driver is given, as any JSON."""
    return {**connection.spec()}


def passwords(connection: Connection) -> list[str | None]:
    return [host.password for host in connection.hosts]


def write_passfile(path: Path) -> None:
    path.write_text("a:1:*:me:of-a\nb:2:*:me:of-b\nlocalhost:7:*:me:of-socket\n")
    path.chmod(0o600)


def test_each_host_has_its_own_port_address_and_password(home: Path) -> None:
    write_passfile(home / ".pgpass")

    connection = resolve("host=a,b hostaddr=,127.0.0.1 port=1,2 user=me dbname=shop")

    shown = [(host.host, host.hostaddr, host.port) for host in connection.hosts]
    assert shown == [("a", None, 1), ("b", "127.0.0.1", 2)]
    assert passwords(connection) == ["of-a", "of-b"]
    assert "of-a" not in repr(connection)
    arguments = connection.arguments()
    assert (arguments["host"], arguments["hostaddr"]) == ("a,b", ",127.0.0.1")
    assert arguments["passfile"] == str(home / ".pgpass")
    assert "password" not in arguments
    hosts = spec_of(connection)["hosts"]
    assert [host["password"] for host in hosts] == ["of-a", "of-b"]


def test_a_password_in_another_encoding_is_told_and_not_shown(home: Path) -> None:
    file = home / ".pgpass"
    file.write_bytes("*:*:*:me:schlüssel\n".encode("latin-1"))
    file.chmod(0o600)
    with pytest.raises(PlanError, match="password of the connection is not UTF-8: byte 4") as it:
        resolve("host=a user=me dbname=shop")
    assert ".pgpass" in str(it.value.hint)
    assert "schl" not in it.value.line


def test_one_port_and_one_password_count_for_all() -> None:
    connection = resolve("postgresql://me:geheim@a,b:7/shop?port=9")

    assert [host.port for host in connection.hosts] == [9, 9]
    assert passwords(connection) == ["geheim", "geheim"]
    assert connection.arguments()["password"] == "geheim"
    assert "geheim" not in connection.shown()


def test_services_and_variables_are_read_by_libpq(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".pg_service.conf").write_text(
        "[prod]\nhost=a,b\nuser=me\ndbname=shop\ntarget_session_attrs=read-write\n"
    )
    monkeypatch.setenv("PGSERVICE", "prod")
    monkeypatch.setenv("PGPORT", "7")
    monkeypatch.setenv("PGSSLMODE", "require")
    monkeypatch.setenv("PGLOADBALANCEHOSTS", "random")
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "3")
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=8MB")

    spec = spec_of(resolve(""))

    assert [(host["host"], host["port"]) for host in spec["hosts"]] == [("a", 7), ("b", 7)]
    assert (spec["user"], spec["database"]) == ("me", "shop")
    assert spec["target_session_attrs"] == "read-write"
    assert spec["load_balance_hosts"] == "random"
    assert spec["tls"]["sslmode"] == "require"
    assert spec["connect_timeout_s"] == 3
    assert spec["command_line"] == "-c work_mem=8MB"


def test_without_a_host_it_is_the_socket_and_its_password_that_of_localhost(home: Path) -> None:
    write_passfile(home / ".pgpass")

    connection = resolve("port=7 user=me")

    assert connection.host.startswith("/")
    assert connection.password == "of-socket"
    assert connection.database == "me"


def test_variables_do_not_lead_our_own_connections_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = Connection("/run/ours", 7, "me", "shop")
    monkeypatch.setenv("PGHOSTADDR", "192.0.2.1")

    again = resolve(make_conninfo(**ours.arguments()))

    assert (again.host, again.hostaddr) == ("/run/ours", None)


def test_files_that_libpq_looks_for_are_named_to_the_driver(home: Path) -> None:
    folder = home / ".postgresql"
    folder.mkdir()
    for name in ("root.crt", "postgresql.crt", "postgresql.key"):
        (folder / name).touch()

    tls = spec_of(resolve("host=a"))["tls"]

    assert tls["sslmode"] == "prefer"
    assert tls["sslrootcert"] == str(folder / "root.crt")
    assert tls["sslcert"] == str(folder / "postgresql.crt")
    assert tls["sslkey"] == str(folder / "postgresql.key")
    without = spec_of(resolve("host=a sslcertmode=disable sslrootcert=/other.crt"))["tls"]
    assert without["sslrootcert"] == "/other.crt"
    assert "sslcert" not in without


def test_files_that_are_named_from_here_are_found_by_the_driver_elsewhere(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    files = "sslrootcert=ca.crt sslcert=of/me.crt sslkey=/etc/me.key passfile=passwords"

    connection = resolve(f"host=a {files}")

    tls = spec_of(connection)["tls"]
    assert tls["sslrootcert"] == str(home / "ca.crt")
    assert tls["sslcert"] == str(home / "of" / "me.crt")
    assert tls["sslkey"] == "/etc/me.key"
    assert connection.arguments()["passfile"] == str(home / "passwords")
    assert spec_of(resolve("host=a sslrootcert=system"))["tls"]["sslrootcert"] == "system"


def test_system_roots_make_the_mode_strict() -> None:
    assert spec_of(resolve("host=a sslrootcert=system"))["tls"]["sslmode"] == "verify-full"


@pytest.mark.parametrize(
    ("conninfo", "fact"),
    [
        ("host=a sslmode=none", 'invalid sslmode value: "none"'),
        ("host=a,b port=1,2,3", "could not match 3 port numbers to 2 hosts"),
        ("host=a port=x", "port is 'x', allowed are 1 to 65535"),
        ("host=a port=65536", "port is '65536'"),
        ("host=a sslrootcert=system sslmode=require", "weak sslmode"),
        ("host=a requirepeer=postgres", "asks for requirepeer"),
        ("host=a require_auth=scram-sha-256", "asks for require_auth"),
        ("hots=a", 'invalid connection option "hots"'),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(conninfo: str, fact: str) -> None:
    with pytest.raises(PlanError) as caught:
        resolve(conninfo)
    assert fact in caught.value.fact


@pytest.mark.parametrize(
    ("conninfo", "hint"),
    [
        ("host=a target_session_attrs=readwrite", "read-write, read-only, primary, standby"),
        ("host=a sslmode=none", "verify-ca and verify-full"),
        ("host=a sslrootcert=system sslmode=require", "sslrootcert=system takes"),
        ("host=a,b port=1,2,3", "one port for all hosts"),
        ("service=nowhere", "PGSERVICEFILE"),
        ("host=a channel_binding=often", "documentation of libpq"),
    ],
)
def test_what_libpq_refuses_has_a_hint_of_its_own(conninfo: str, hint: str) -> None:
    with pytest.raises(PlanError) as caught:
        resolve(conninfo)
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("fe_sendauth: no password supplied", "asks for no password"),
        ("failed to resolve host 'localhst': [Errno -2] Name or service not known", "host's name"),
        ("server does not support SSL, but SSL was required", "ssl = on"),
        ("channel binding required, but SSL not in use", "ssl = on"),
        ("SSL error: certificate verify failed", "sslrootcert"),
        ('server certificate for "a" does not match host name "b"', "hostaddr"),
        ("SSL error: unexpected eof while reading", "sslnegotiation=direct"),
        ("server is not in hot standby mode", "target_session_attrs"),
        ("session is read-only", "target_session_attrs"),
        ('invalid integer value "5s" for connection option "tcp_user_timeout"', "without a unit"),
        ("connection timeout expired", "firewall"),
        ('FATAL:  no pg_hba.conf entry for host "::1"', "pg_reload_conf"),
        ('FATAL:  database "postgers" does not exist', "with createdb,"),
        ('FATAL:  role "enginer" does not exist', "with createuser,"),
        ('FATAL:  role "reader" is not permitted to log in', "LOGIN"),
        ("something new", "psql says the same"),
    ],
)
def test_a_refusal_is_answered_by_its_cause(said: str, hint: str) -> None:
    assert hint in hint_for(said)


def test_a_piece_of_a_password_is_not_quoted() -> None:
    with pytest.raises(PlanError) as caught:
        resolve("host=a password=two words")
    assert "words" not in str(caught.value)
    assert caught.value.hint is not None


def test_what_psycopg_gets_resolves_to_the_same(home: Path) -> None:
    write_passfile(home / ".pgpass")
    connection = resolve("host=a,b port=1,2 user=me sslmode=disable options='-c x.y=z'")

    arguments = {key: value for key, value in connection.arguments().items() if value is not None}

    assert resolve(make_conninfo(**arguments)).hosts == connection.hosts
    assert conninfo_to_dict(make_conninfo(**arguments))["options"] == "-c x.y=z"


@pytest.mark.parametrize("name", ["shop", "my shop", "it's", "", "back\\slash", "tab\there"])
def test_a_connection_is_shown_as_libpq_would_read_it(name: str) -> None:
    connection = Connection("/run/postgresql", 5432, "me", name, "geheim")

    shown = conninfo_to_dict(connection.shown())

    assert shown == {"host": "/run/postgresql", "port": "5432", "user": "me", "dbname": name}
