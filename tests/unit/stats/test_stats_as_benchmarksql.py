"""The figures of BenchmarkSQL 5, recomputed."""

from __future__ import annotations

from pgdyno.stats.as_benchmarksql import Ended, as_benchmarksql


def test_rolled_back_and_failed_new_orders_count() -> None:
    kinds = {"new_order": Ended(90, 7, 3), "payment": Ended(50, 0, 0)}
    shown = as_benchmarksql(kinds, 60.0)

    assert shown.tpmc == 100.0
    assert shown.tpm_total == 151.0, "its counter of all transactions begins at 1"


def test_quotients_are_cut_to_hundredths() -> None:
    # As printed by BenchmarkSQL 5.0 at the end of a run of one minute: 106,277 transactions,
    # tpmTOTAL 106267.37, which is a session of 60.006 seconds.
    kinds = {"new_order": Ended(47_968, 0, 0), "payment": Ended(106_277 - 47_968, 0, 0)}
    shown = as_benchmarksql(kinds, 60.006)

    assert shown.tpm_total == 106_267.37
    assert shown.tpmc == 47_963.20


def test_its_session_lasts_until_the_last_answer() -> None:
    # A stall of 6 s across the end of a minute: 8 terminals had their answers 3 s after it.
    kinds = {"new_order": Ended(900, 0, 0, late=4), "payment": Ended(850, 0, 0, late=4)}
    shown = as_benchmarksql(kinds, 63.0)

    assert shown.tpmc == 860.95  # 904 of 63 s, not 900 of 60
    assert shown.tpm_total == 1675.23
