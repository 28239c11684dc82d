"""What the guard's role must be allowed on each server; docs/concepts/guard.md has the GRANTs."""

from __future__ import annotations

STANDBY_FUNCTIONS = (
    "pg_read_binary_file(text,bigint,bigint,boolean)",
    "pg_stat_file(text,boolean)",
    "pg_ls_dir(text,boolean,boolean)",
    "pg_wal_replay_pause()",
    "pg_wal_replay_resume()",
)
"""Closed to ordinary roles; a repair calls them on the standby."""

CHECKPOINT_ROLE_MAJOR = 15
"""From this version on a role that is no superuser may be let make checkpoints."""
