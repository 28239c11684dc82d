"""A job store of HammerDB, with the columns of 6.0 or of older versions; written by its source."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path


def job_store(path: Path, suffix: str = "_ms", said: Sequence[str] = ()) -> Path:
    """Write one with one job, whose users said this."""
    said = said or (
        "Timing test period of 5 in minutes", "8 Active Virtual Users configured",
        "TEST RESULT : System achieved 69200 NOPM from 160000 PostgreSQL TPM",
    )  # fmt: skip
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE JOBMAIN (jobid TEXT, db TEXT, bm TEXT, jobdict TEXT)")
        db.execute("CREATE TABLE JOBOUTPUT (jobid TEXT, vu INTEGER, output TEXT)")
        columns = ", ".join(f"{name}{suffix} REAL" for name in ("min", "avg", "max", "p99", "p95"))
        db.execute(
            f"CREATE TABLE JOBTIMING (jobid TEXT, vu INTEGER, procname TEXT, {columns},"
            " summary INTEGER)"
        )
        db.execute("INSERT INTO JOBMAIN VALUES ('65C1', 'PostgreSQL', 'TPC-C', '')")
        db.executemany("INSERT INTO JOBOUTPUT VALUES ('65C1', 1, ?)", [(one,) for one in said])
        row = ("65C1", 0, "NEWORD", 1.0, 4.5, 90.0, 22.5, 11.25, 1)
        db.execute("INSERT INTO JOBTIMING VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    db.close()
    return path
