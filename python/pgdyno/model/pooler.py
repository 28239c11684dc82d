"""PgBouncer between the driver and the server, where a stage asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgdyno.model.wording import plural

PoolMode = Literal["transaction", "session"]
"""When a session of the server is given back: after each transaction, or when its client leaves."""
POOLED = (
    "a pooler stands in between and does not follow the names of statements:"
    " they are parsed with every execution"
)
"""What is told of a connection whose statements have no names."""
_SPARE_CLIENTS = 10  # beside the load's: the look whether it answers, and the console


@dataclass(frozen=True, slots=True)
class Pooler:
    """What it does."""

    mode: PoolMode
    sessions: int  # with the server, for each database; at most

    @property
    def shown(self) -> str:
        """As stages are told apart: `transaction, 20 sessions`."""
        return f"{self.mode}, {plural(self.sessions, 'session')}"

    def settings(self, clients: int) -> dict[str, str]:
        """What its pgbouncer.ini says of it, where so many clients of a load connect."""
        return {
            "pool_mode": self.mode,
            "default_pool_size": str(self.sessions),
            "max_client_conn": str(clients + _SPARE_CLIENTS),
        }
