"""Why a server does not come back: only what it says of its data is the fault of a cut."""

from __future__ import annotations

import psycopg
import pytest

from pgdyno.drills.refusals import refusal, require_of_data
from pgdyno.model.errors import RefusedError, TargetError

LISTENS = '[7] LOG:  listening on Unix socket "/srv/work/disk.sockets/.s.PGSQL.5432"'


def ended(*lines: str, code: int = 1) -> RefusedError:
    """As `Cluster` tells it, with the last lines of a log."""
    words = " / ".join([LISTENS, *lines])
    return RefusedError(f"the server ended with code {code} while starting: {words}")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["[9] LOG:  invalid checkpoint record", "[9] PANIC:  could not locate a valid checkpoint"
          " record at 0/2A000028", "[7] LOG:  startup process (PID 9) was terminated by signal 6:"
          " Aborted"], "[9] PANIC:  could not locate a valid checkpoint record at 0/2A000028"),
        (['[7] FATAL:  could not open file "/srv/work/disk/global/pg_control": No such file or'
          ' directory'], "pg_control"),
        (["[7] LOG:  startup process (PID 9) was terminated by signal 11: Segmentation fault"],
         "signal 11"),
        (['[9] LOG:  could not open "x": Permission denied', "[9] FATAL:  invalid page in block 7"],
         "[9] FATAL:  invalid page in block 7"),
    ],
)  # fmt: skip
def test_what_a_server_says_of_its_data_is_the_cuts(lines: list[str], said: str) -> None:
    words = refusal(ended(*lines))
    assert said in words
    assert ("listening" in words) == (said == "signal 11")


@pytest.mark.parametrize(
    "line",
    [
        '[7] FATAL:  could not create lock file "/srv/work/disk.sockets/.s.PGSQL.5432.lock": No'
        " such file or directory",
        "[7] FATAL:  could not create any TCP/IP sockets",
        "[7] FATAL:  could not create any Unix-domain sockets",
        "[7] FATAL:  pre-existing shared memory block (key 9, ID 3) is still in use",
        "[7] FATAL:  could not map anonymous shared memory: Cannot allocate memory",
        '[7] FATAL:  data directory "/srv/work/disk" has invalid permissions',
        '[7] FATAL:  could not access file "pg_stat_statements": No such file or directory',
        '[9] FATAL:  could not open file "base/5/1259": Too many open files in system',
        '[9] PANIC:  could not write to file "pg_wal/xlogtemp.9": No space left on device',
        "[9] FATAL:  out of memory",
        "[7] LOG:  startup process (PID 9) was terminated by signal 9: Killed",
    ],
)
def test_what_a_server_lacks_is_told_and_is_no_cut(line: str) -> None:
    error = ended(line, "[7] LOG:  database system is shut down")
    with pytest.raises(TargetError, match="not for what is in its data: ") as it:
        refusal(error)
    assert not isinstance(it.value, RefusedError)
    assert it.value.__cause__ is error
    assert line in it.value.fact


def test_a_server_that_was_killed_while_it_started_tells_nothing_of_its_data() -> None:
    with pytest.raises(TargetError, match="not for what is in its data"):
        refusal(ended(code=-9))
    room = (
        "the server ended with code 1 while starting: its log is empty; /srv has only 12 KiB free"
    )
    with pytest.raises(TargetError, match="has only 12 KiB free"):
        refusal(RefusedError(room))


def test_a_server_that_cannot_be_looked_at_for_want_of_memory_is_not_damaged() -> None:
    require_of_data(str(psycopg.OperationalError("invalid page in block 3 of relation base/5/16")))
    require_of_data("the server closed the connection unexpectedly")
    wanted = "came back could not be looked at: could not fork new process for connection"
    with pytest.raises(TargetError, match=wanted):
        require_of_data("could not fork new process for connection: Cannot allocate memory")
