"""What PgBouncer says of itself, as 1.18 and 1.24 say it."""

from __future__ import annotations

from pgdyno.sample.samplers.server_pooler import pools_row

OWN = {"database": "pgbouncer", "user": "pgbouncer", "cl_active": 1, "cl_waiting": 0,
       "sv_active": 0, "sv_idle": 0, "maxwait": 0, "maxwait_us": 0}  # fmt: skip
LOAD = {"database": "pgdyno", "user": "postgres", "cl_active": 8, "cl_waiting": 30,
        "cl_active_cancel_req": 0, "cl_waiting_cancel_req": 0, "sv_active": 8, "sv_idle": 0,
        "sv_used": 0, "sv_tested": 0, "sv_login": 0, "maxwait": 1, "maxwait_us": 250_000,
        "pool_mode": "transaction"}  # fmt: skip
SECOND = LOAD | {"database": "pgdyno_2", "cl_active": 2, "cl_waiting": 0, "sv_active": 2,
                 "sv_idle": 3, "maxwait": 0, "load_balance_hosts": None}  # fmt: skip
STATS = [
    {"database": "pgbouncer", "total_xact_count": 9, "total_wait_time": 9_000_000},
    {"database": "pgdyno", "total_xact_count": 1_000, "total_wait_time": 2_500_000},
    {"database": "pgdyno_2", "total_xact_count": 100, "total_wait_time": 0},
]


def test_pools_of_the_load_are_added_up_and_the_console_is_none() -> None:
    assert pools_row([OWN, LOAD, SECOND], STATS) == {
        "pooler.active": 10.0, "pooler.waiting": 30.0, "pooler.busy": 10.0, "pooler.idle": 3.0,
        "pooler.longest_s": 1.25, "pooler.wait_s": 2.5, "pooler.transactions": 1100.0,
    }  # fmt: skip


def test_before_the_first_client_there_is_nothing() -> None:
    assert set(pools_row([OWN], STATS[:1]).values()) == {0.0}
