"""A pair as it should be, for tests that spoil one thing of it."""

from __future__ import annotations

from pgdyno.guard.facts import Contents, LocalFacts, Pair, PrimaryFacts, Seen, Slot, StandbyFacts
from pgdyno.model.guard import GuardLimits, Life

INCLUDE = "/run/pgdyno-guard/7/run-pgdyno-guard-repair-first.conf"
MIB = 1 << 20
PRIMARY = PrimaryFacts(
    version_num=180006,
    system_identifier="7",
    is_in_recovery=False,
    timeline=1,
    redo_lsn=100 * MIB,
    redo_oldest_lsn=None,
    redo_full_pages=True,
    flush_lsn=120 * MIB,
    settings={
        "wal_level": "replica", "fsync": "on", "full_page_writes": "on", "data_checksums": "on",
        "wal_log_hints": "off", "checkpoint_timeout": "300", "max_wal_size": "10",
        "data_directory": "/data", "config_file": "/data/postgresql.conf",
    },
    full_pages_source=INCLUDE,
    slots=(Slot("standby", True, True, "reserved"),),
    tablespaces={},
    foreign_managers=(),
    may_checkpoint=True,
)  # fmt: skip
STANDBY = StandbyFacts(
    version_num=180006,
    system_identifier="7",
    is_in_recovery=True,
    timeline=1,
    redo_lsn=90 * MIB,
    replay_lsn=120 * MIB,
    receiver="streaming",
    slot="standby",
    is_paused=False,
    delay_ms=0,
    recovery_target=None,
    settings={"fsync": "on"},
    tablespaces=frozenset(),
    missing_rights=(),
    life=Life("b", "1"),
    is_by_loopback=False,
)
LOCAL = LocalFacts(
    data="/data",
    boot_id="a",
    include=INCLUDE,
    run_folder_kind="tmpfs",
    run_folder_wrong="",
    config_file="/data/postgresql.conf",
    config_wrong="",
    line_include=INCLUDE,
    server_pid=1,
    is_armed=True,
    standby_life=Life("b", "1"),
)
PAIR = Pair(PRIMARY, STANDBY, Contents((), (), ()))
SEEN = Seen(PAIR, LOCAL, GuardLimits())
