"""How to reach a server: for psycopg, and for the driver. Its password never prints."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Connection:
    """One database of one server."""

    host: str  # a folder with the socket, or a name or address
    port: int
    user: str
    database: str
    password: str | None = field(default=None, repr=False)

    def to(self, database: str) -> Self:
        """The same server, another database."""
        return replace(self, database=database)

    def arguments(self) -> dict[str, Any]:
        """Arguments of `psycopg.connect`."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "dbname": self.database,
            "application_name": "pgdyno",
            "connect_timeout": 10,
            **({"password": self.password} if self.password is not None else {}),
        }

    def spec(self) -> dict[str, Any]:
        """The `connection` of a driver's or loader's spec; holds the password."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "database": self.database,
            "password": self.password,
            "options": {},
        }

    def shown(self) -> str:
        """For people and logs, without the password."""
        return f"host={self.host} port={self.port} user={self.user} dbname={self.database}"
