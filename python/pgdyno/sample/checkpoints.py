"""Counts the checkpoints that have begun, as often as it is asked, and reads what spaces them.

A checkpoint is counted by the server when it begins, and told some 100 ms later (up to 15: half a
second later). Its begin to the millisecond stands in the log, see `serverlog`.
"""

from __future__ import annotations

import psycopg

from pgdyno.model.cycle import Spacing

_SINCE_CHECKPOINTER = 17  # major version; before, the background writer's view has the counts
_SPACING = """
SELECT (SELECT setting::float8 FROM pg_settings WHERE name = 'checkpoint_timeout'),
       pg_size_bytes(current_setting('max_wal_size')),
       current_setting('checkpoint_completion_target')::float8"""


class Begins:
    """Counts over a session of its own, which must be in autocommit mode."""

    def __init__(self, session: psycopg.Connection[tuple[float, ...]]) -> None:
        self._session = session
        major = session.info.server_version // 10_000
        counts, view = ("checkpoints_timed + checkpoints_req", "pg_stat_bgwriter")
        if major >= _SINCE_CHECKPOINTER:
            counts, view = ("num_timed + num_requested", "pg_stat_checkpointer")
        self._query = f"SELECT {counts} FROM {view}"  # noqa: S608  no word of anybody's

    def count(self) -> int:
        """Checkpoints that have begun since the statistics were reset."""
        row = self._session.execute(self._query.encode(), prepare=True).fetchone()
        assert row is not None
        return int(row[0])

    def spacing(self) -> Spacing:
        """What spaces them."""
        row = self._session.execute(_SPACING).fetchone()
        assert row is not None
        return Spacing(*map(float, row))
