"""How to reach a server: for psycopg, and for the driver. Its passwords never print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from pgdyno.model.record_json import JsonObject

_TIMEOUT_S = 10
_LOOPBACK = ("localhost", "::1")
_DAY_S = 86_400
# Parameters of libpq that the driver follows as well, by their place in its `connection`.
_OF_TLS = (
    "sslmode", "sslrootcert", "sslcert", "sslkey", "sslnegotiation", "ssl_min_protocol_version",
    "ssl_max_protocol_version", "channel_binding",
)  # fmt: skip
_OF_KEEPALIVE = {
    "keepalives_idle": "idle_s",
    "keepalives_interval": "interval_s",
    "keepalives_count": "count",
    "tcp_user_timeout": "user_timeout_ms",
}
_SHOWN = ("sslmode", "target_session_attrs")  # beside where it is
_PLAIN = ("target_session_attrs", "load_balance_hosts")


@dataclass(frozen=True, slots=True)
class Host:
    """One of the servers that may have the database."""

    host: str  # a folder with the socket (@: an abstract one), or a name or address
    port: int
    password: str | None = field(default=None, repr=False)
    hostaddr: str | None = None  # goes there instead of looking up the name


@dataclass(frozen=True, slots=True)
class Connection:
    """One database, on the first of its servers that will do."""

    host: str
    port: int
    user: str
    database: str
    password: str | None = field(default=None, repr=False)
    hostaddr: str | None = None
    others: tuple[Host, ...] = ()  # tried when the first will not do
    parameters: tuple[tuple[str, str], ...] = ()  # libpq's other parameters, none of them secret
    pooled: bool = False  # a pooler stands in between
    prepare: Literal["named", "unnamed"] = "named"  # unnamed: it does not follow names

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All servers, in the order in which they are tried."""
        return (Host(self.host, self.port, self.password, self.hostaddr), *self.others)

    @property
    def is_local(self) -> bool:
        """Whether all servers are on this host, as far as their names tell."""
        addresses = (host.hostaddr or host.host for host in self.hosts)
        return all(
            address.startswith(("/", "@", "127.")) or address in _LOOPBACK for address in addresses
        )

    def to(self, database: str) -> Self:
        """The same servers, another database."""
        return replace(self, database=database)

    def with_parameters(self, parameters: Mapping[str, str]) -> Self:
        """The same database, other parameters of libpq."""
        return replace(self, parameters=tuple(sorted(parameters.items())))

    def arguments(self) -> dict[str, Any]:
        """Arguments of `psycopg.connect`."""
        hosts = self.hosts
        passwords = {host.password for host in hosts}
        addresses = [host.hostaddr or "" for host in hosts]
        arguments: dict[str, Any] = {
            "host": ",".join(host.host for host in hosts),
            # Given even where it is empty: PGHOSTADDR would lead elsewhere.
            "hostaddr": ",".join(addresses) if any(addresses) else "",
            "port": ",".join(str(host.port) for host in hosts) if self.others else self.port,
            "user": self.user,
            "dbname": self.database,
            "application_name": "pgdyno",
            "connect_timeout": _TIMEOUT_S,
            **dict(self.parameters),
            # Where the database has none (SQL_ASCII), names would come as bytes.
            "client_encoding": "UTF8",
        }
        # Different ones come from a password file, which libpq reads again.
        if passwords != {None} and len(passwords) == 1:
            arguments["password"] = self.password
        if self.prepare == "unnamed":
            arguments["prepare_threshold"] = None
        return arguments

    def spec(self) -> JsonObject:
        """The `connection` of a driver's or loader's spec; holds the passwords."""
        given = dict(self.parameters)
        timeout_s = float(given.get("connect_timeout", _TIMEOUT_S))
        return {
            "hosts": [
                {
                    "host": host.host,
                    "hostaddr": host.hostaddr,
                    "port": host.port,
                    "password": host.password,
                }
                for host in self.hosts
            ],
            "user": self.user,
            "database": self.database,
            "options": {},
            "command_line": given.get("options"),
            "connect_timeout_s": timeout_s if timeout_s > 0 else _DAY_S,  # 0 has no end in libpq
            "prepare": self.prepare,
            "tls": {
                **{name: given[name] for name in _OF_TLS if name in given},
                "no_sni": given.get("sslsni") == "0",
            },
            "keepalive": {
                **{ours: int(given[name]) for name, ours in _OF_KEEPALIVE.items() if name in given},
                "off": given.get("keepalives") == "0",
            },
            **{name: given[name] for name in _PLAIN if name in given},
        }

    def shown(self) -> str:
        """For people and logs, without passwords."""
        named = {
            "host": ",".join(host.host for host in self.hosts),
            "port": ",".join(str(host.port) for host in self.hosts),
            "user": self.user,
            "dbname": self.database,
            **{name: value for name, value in self.parameters if name in _SHOWN},
        }
        return " ".join(f"{name}={_quoted(value)}" for name, value in named.items())


def _quoted(value: str) -> str:
    """A value of a conninfo, in quotes where libpq would read it otherwise without."""
    if value and not any(one.isspace() or one in "'\\" for one in value):
        return value
    return "'" + value.replace("\\", r"\\").replace("'", r"\'") + "'"
