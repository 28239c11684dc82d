"""Errors of the system and of libraries are worded once; what nobody foresaw is told from them."""

from __future__ import annotations

import errno
import sqlite3

import psycopg
import pytest

from pgdyno._core import CoreError
from pgdyno.model.errors import StoreError
from pgdyno.model.system_errors import as_pgdyno_error


@pytest.mark.parametrize(
    ("error", "fact", "hint"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/srv/a"),
         "/srv/a: no space left on device", "Make room there"),
        (PermissionError(errno.EACCES, "Permission denied", "/a", None, "/b"),
         "/a and /b: permission denied", "Give the user"),
        (OSError(errno.EROFS, "Read-only file system"), "read-only file system", "Name a place"),
        (OSError("odd"), "odd", None),
        (sqlite3.OperationalError("disk is full"), "SQLite failed: disk is full", "Is there room"),
        (psycopg.OperationalError("gone\n  away\n"), "the server failed: gone / away", "own log"),
        (psycopg.errors.InsufficientPrivilege("no\n"), "the server refused: no", "GRANT"),
        (psycopg.errors.TooManyConnections("many"), "the server refused: many", "fewer"),
        (psycopg.errors.ObjectInUse("in use\nDETAIL:  By 1 other."),
         "the server refused: in use / By 1 other.", "pg_stat_activity"),
        (MemoryError(), "there is not enough memory", "Make the plan smaller"),
        (CoreError("spec", "no such face", "Say it."), "no such face", "Say it."),
    ],
)  # fmt: skip
def test_what_is_foreseen_is_a_fact_with_a_hint(
    error: Exception, fact: str, hint: str | None
) -> None:
    found = as_pgdyno_error(error)

    assert found is not None
    assert found.fact == fact
    assert (hint is None and found.hint is None) or (hint or "") in str(found.hint)
    assert found.exit_code == 7


def test_errors_of_ours_stay_what_they_are() -> None:
    error = StoreError("full")
    assert as_pgdyno_error(error) is error


@pytest.mark.parametrize("error", [KeyError("x"), AssertionError(), RuntimeError("odd")])
def test_a_defect_is_nothing_foreseen(error: Exception) -> None:
    assert as_pgdyno_error(error) is None
