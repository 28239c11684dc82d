"""pg_test_fsync: how long each method takes to bring a write to stable storage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from pgdyno.folders import Folder, owner_of
from pgdyno.model.errors import TargetError
from pgdyno.model.floor import SyncRate
from pgdyno.model.numbers import finite
from pgdyno.probe.program import run_probe
from pgdyno.shell import postgres_user

FILE_BYTES = 16 << 20
_FOLDER = "sync"  # of the user who runs it, who needs no more than that
TESTS = 16  # that take the seconds of each; the platform may lack further ones
_HEADS = {
    "Compare file sync methods using one 8kB write": "one-write",
    "Compare file sync methods using two 8kB writes": "two-writes",
    "Compare open_sync with different write sizes": "open-sync-sizes",
    "Test if fsync on non-write file descriptor is honored": "descriptor",
    "Non-sync'ed 8kB writes": "unsynced",
}
_LINE = re.compile(r"^ +(?P<method>\S.*?) {2,}(?:(?P<per_s>[\d.]+) ops/sec|(?P<lacks>n/a))")


def measure_sync(program: Path, folder: Path, seconds: int) -> tuple[SyncRate, ...]:
    """Measure all methods on a file in a folder.

    Args:
        program: pg_test_fsync.
        folder: Of ours; the file is removed with it.
        seconds: Of each test.

    Raises:
        TargetError: It failed.
    """
    return parse_sync(_said(program, folder, seconds, None))


def measure_fdatasync(program: Path, folder: Path, seconds: int) -> float:
    """Measure PostgreSQL's default method alone: pages a second, each written and flushed.

    pg_test_fsync takes no method: it is ended once it has told this one, which comes second.

    Args:
        program: See `measure_sync`, as what follows.
        folder: Of ours.
        seconds: Of each of the two tests.

    Raises:
        TargetError: It failed.
    """
    found = parse_sync(_said(program, folder, seconds, _has_told_fdatasync))
    return next(one.per_s for one in found if one.method == "fdatasync" and one.per_s)


def _has_told_fdatasync(text: str) -> bool:
    # Of whole lines: one that is being printed could lack digits.
    whole = text[: text.rfind("\n") + 1]
    try:
        return any(one.method == "fdatasync" for one in _rates(whole))
    except ValueError:
        return True  # it is not understood, which is said where it is read


def _said(program: Path, folder: Path, seconds: int, enough: Callable[[str], bool] | None) -> str:
    user = postgres_user()
    with Folder.hold(folder) as held:
        with held.make(_FOLDER, 0o700, owner_of(user)) as own:
            text = run_probe(
                [program, "-s", str(seconds), "-f", "pg_test_fsync"],
                timeout_s=60 + 4.0 * seconds * TESTS,
                what=f"test of sync methods in {folder}",
                user=user,
                folder=own.handle,
                enough=enough,
            )
        held.remove_folder(_FOLDER)
    return text


def parse_sync(text: str) -> tuple[SyncRate, ...]:
    """What pg_test_fsync (12 to 18) printed.

    Raises:
        TargetError: It holds no rate of fdatasync.
    """
    try:
        found = tuple(_rates(text))
    except ValueError as error:
        raise TargetError(f"pg_test_fsync's output is not understood: {error}") from error
    if not any(one.method == "fdatasync" and one.per_s for one in found):
        raise TargetError(f"pg_test_fsync printed no rate of fdatasync: {text[-300:]!r}")
    return found


def _rates(text: str) -> Iterator[SyncRate]:
    test = None
    for line in text.splitlines():
        test = _HEADS.get(line.rstrip(":"), test)
        if test and (match := _LINE.match(line)):
            per_s = match["per_s"]
            method = " ".join(match["method"].split())
            yield SyncRate(test, method, finite(per_s) if per_s else None)
