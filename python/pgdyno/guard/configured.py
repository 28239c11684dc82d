"""What a server has set, asked for again only once it may have others.

`pg_settings` is made anew, all of it, for whoever asks; settings that matter here change when the
server starts or reads its files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgdyno.guard.answers import Answers
from pgdyno.guard.columns import NUMBER, TEXT

SINCE = "pg_postmaster_start_time()::text || ' ' || pg_conf_load_time()::text"
"""SQL of since when a server has what it has set, as its session sees it."""
_NAMES = """
SELECT name, setting, coalesce(sourcefile, source) FROM pg_settings
WHERE name IN ('wal_level', 'fsync', 'full_page_writes', 'data_checksums', 'wal_log_hints',
               'checkpoint_timeout', 'max_wal_size', 'wal_segment_size', 'config_file',
               'data_directory', 'restart_after_crash')
"""
_OF_NAMES = (TEXT, TEXT, TEXT)
_DELAY = "SELECT setting::bigint FROM pg_settings WHERE name = 'recovery_min_apply_delay'"
_MANAGERS = "SELECT rm_name FROM pg_get_wal_resource_managers() WHERE NOT rm_builtin ORDER BY 1"
_MANAGERS_MAJOR = 15


@dataclass(slots=True)
class Configured:
    """Of one server, from look to look."""

    _since: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    """In base units, as pg_settings has them."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """The file that decides each, or the server's word for it."""
    delay_ms: int = 0  # of a standby's replay
    managers: tuple[str, ...] = ()
    """Those of WAL records that are not PostgreSQL's own."""

    def look(self, asked: Answers, since: str) -> None:
        """Ask again, if it may be another than it was.

        Args:
            asked: A session there.
            since: `SINCE`, as it was before.

        Raises:
            psycopg.Error: It does not answer.
        """
        if since == self._since:
            return
        rows = list(asked.rows(_NAMES, _OF_NAMES))
        self.settings = {name: setting for name, setting, _ in rows}
        self.sources = {name: source for name, _, source in rows}
        (self.delay_ms,) = asked.row(_DELAY, (NUMBER,))
        if asked.version >= _MANAGERS_MAJOR * 10_000:
            self.managers = tuple(name for (name,) in asked.rows(_MANAGERS, (TEXT,)))
        self._since = since
