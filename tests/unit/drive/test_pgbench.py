"""pgbench as a driver: what it is told, and how its misbehaviour ends; by programs that play it."""

from __future__ import annotations

import shlex
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from pgdyno.drive import pgbench
from pgdyno.drive.pgbench import arguments, drive_pgbench
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError
from pgdyno.model.plan import Protocol
from pgdyno.model.progress import DriveProgress
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Arrivals, Data, Pgbench, Script, SourceFile, Workload

DATA = Path(__file__).parents[2] / "data" / "pgbench"
PROTOCOL = Protocol(1, 0.0, 1.0, 10.0, False, 0.02, 0.95, Rung.D0)
THERE = Connection("db", 5433, "me", "bench", "s3cret' x", parameters=(("sslmode", "require"),))
TPCB = Workload(
    "tpcb", 5, engine="pgbench", connections=6, terminals=6, threads=3, pgbench=Pgbench(1)
)  # fmt: skip


def told(workload: Workload, folder: Path, there: Connection = THERE, major: int = 18) -> list[str]:
    return arguments(there, workload, replace(PROTOCOL, warmup_s=0.5, window_s=3), folder, major)


def test_pgbench_is_told_the_plan(tmp_path: Path) -> None:
    args = told(TPCB, tmp_path)

    assert set(args[:-1]) >= {
        "--client=6", "--jobs=3", "--time=5", "--protocol=prepared", "--random-seed=5",
        "--builtin=tpcb-like", "--no-vacuum", "--log", "-r", "--max-tries=11",
    }  # fmt: skip
    assert not any(arg.startswith(("--rate", "--file", "--scale")) for arg in args)
    assert conninfo_to_dict(args[-1]) == {
        "host": "db", "hostaddr": "", "port": "5433", "user": "me", "dbname": "bench",
        "application_name": "pgdyno", "connect_timeout": "10", "sslmode": "require",
        "client_encoding": "UTF8",
    }  # fmt: skip


def test_an_older_libpq_is_not_told_defaults_that_it_does_not_know(tmp_path: Path) -> None:
    ours = (("sslcertmode", "allow"), ("sslmode", "disable"), ("sslnegotiation", "direct"))

    given = conninfo_to_dict(told(TPCB, tmp_path, replace(THERE, parameters=ours))[-1])

    assert "sslcertmode" not in given
    assert (given["sslmode"], given["sslnegotiation"]) == ("disable", "direct")


def test_older_ones_are_not_told_what_they_do_not_know(tmp_path: Path) -> None:
    args = told(TPCB, tmp_path, major=14)

    assert not any(arg.startswith(("--max-tries", "--failures")) for arg in args)


def test_a_rate_and_a_pooler_are_passed_on(tmp_path: Path) -> None:
    paced = replace(TPCB, arrivals=Arrivals("open", 0.25, "poisson"))
    args = told(paced, tmp_path, replace(THERE, prepare="unnamed"))

    assert {"--rate=0.250000", "--protocol=extended"} <= set(args)


def test_scripts_are_files_with_weights_and_variables(tmp_path: Path) -> None:
    files = (SourceFile("a/x.sql", "SELECT 1;"), SourceFile("b/x.sql", "SELECT 2;", 3.0))
    script = Script(files, Data(scale=4), {"n": 3, "yes": True, "word": "a b"})
    args = told(replace(TPCB, kind="script", pgbench=None, script=script), tmp_path)

    assert {"--scale=4", "--define=n=3", "--define=yes=true", "--define=word=a b"} <= set(args)
    assert {f"--file={tmp_path}/0.sql@1", f"--file={tmp_path}/1.sql@3"} <= set(args)
    assert (tmp_path / "1.sql").read_text() == "SELECT 2;"


@pytest.fixture
def plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Makes a program that plays pgbench; what it leaves behind in the log's folder is seen."""
    (tmp_path / "logs").mkdir()
    monkeypatch.setattr(pgbench, "_log_folder", lambda: tmp_path / "logs")

    def make(body: str) -> Path:
        program = tmp_path / "pgbench"
        program.write_text(
            f"#!{sys.executable}\nimport os, sys, time\n"
            "if sys.argv[1:] == ['--version']:\n"
            "    print('pgbench (PostgreSQL) 18.6')\n    sys.exit()\n"
            "prefix = [a.split('=')[1] for a in sys.argv if a.startswith('--log-prefix')][0]\n"
            + body
        )
        program.chmod(stat.S_IRWXU)
        return program

    return make


def drive(program: Path, **changes: Any) -> Any:
    return drive_pgbench(program, THERE, TPCB, replace(PROTOCOL, **changes))


def says(name: str, code: int) -> str:
    return f"print(open({str(DATA / name)!r}).read(), flush=True); sys.exit({code})\n"


RUN = """
begin = time.time()
print(f"progress: {begin + 1:.3f} s, 2.0 tps, lat 1.0 ms stddev 0.0, 0 failed", flush=True)
with open(prefix + ".1", "w") as log:
    for at in (0.2, 0.4, 1.4):
        end = begin + at
        log.write(f"0 1 100 0 {int(end)} {int(end % 1 * 1e6)} 0\\n")
time.sleep(1.5)
print("number of transactions actually processed: 3")
print("tps = 2.5 (without initial connection time)")
print(os.environ.get("PGPASSWORD"))
"""


def test_a_run_becomes_records(plays: Callable[[str], Path], tmp_path: Path) -> None:
    driven = drive(plays(RUN))

    (kind,) = driven.kinds
    assert (kind.kind, kind.window.succeeded, kind.run.succeeded) == ("tpcb", 2, 3)
    assert (driven.tps, driven.pgbench.tps, driven.engine) == (
        2.0,
        2.5,
        "pgbench (PostgreSQL) 18.6",
    )
    assert (driven.round_trips_per_transaction, driven.client.threads) == (7, 1)
    assert list((tmp_path / "logs").iterdir()) == []


def test_the_password_is_in_the_environment_only(
    plays: Callable[[str], Path], tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    body = f"open({str(seen)!r}, 'w').write(repr((sys.argv, os.environ['PGPASSWORD'])))\n"
    drive(plays(body + RUN))

    args, password = eval(seen.read_text())
    assert password == THERE.password
    assert "s3cret" not in shlex.join(args)


@pytest.mark.parametrize(
    ("body", "fact"),
    [
        (says("18-bad.txt", 2), 'pgbench failed: ERROR:  relation "nowhere" does not exist'),
        (says("18-died.txt", 2), "aborted in command 8 (SQL) of script 0; perhaps the backend"),
        (says("15-noserver.txt", 1), 'connection to server on socket "/run/there/.s.PGSQL.5432"'),
        ("print('Segmentation fault'); sys.exit(139)", "ended with code 139, it said last: Segm"),
        (says("18-tpcb.txt", 0), "pgbench ended before it had reported any progress"),
        (RUN.replace("processed: 3", "processed: 4"), "log holds 3 transactions, it performed 4"),
        (RUN.replace("100 0", "100"), "pgbench's log log.1 has 18 values in a part, not 21"),
        ("time.sleep(60)", "pgbench said nothing for 0 s"),
        (RUN.replace("1.5)", "60)"), "did not end within -1.9 s of its time"),
    ],
)
def test_what_is_no_whole_run_is_an_error_and_leaves_nothing(
    plays: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str,
    fact: str,
) -> None:  # fmt: skip
    if "said nothing" in fact:
        monkeypatch.setattr(pgbench, "_SILENCE_S", 0.2)
    if "18-tpcb" in body:  # its progress is told in seconds since the start
        body = body.replace(".read()", ".read().replace('progress', 'no progress')")

    with pytest.raises(DriveError) as caught:
        drive(plays(body), drain_s=-1.9 if "-1.9" in fact else 10.0)

    assert fact in caught.value.fact
    assert list((tmp_path / "logs").iterdir()) == []


def test_ctrl_c_stops_it_and_leaves_nothing(plays: Callable[[str], Path], tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    program = plays(f"open({str(pid)!r}, 'w').write(str(os.getpid()))\n" + RUN.replace("0.5", "60"))

    def stop(_: DriveProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drive_pgbench(program, THERE, TPCB, PROTOCOL, stop)

    assert not Path(f"/proc/{pid.read_text()}").exists()
    assert list((tmp_path / "logs").iterdir()) == []


def test_what_it_cannot_do_is_refused(plays: Callable[[str], Path]) -> None:
    with pytest.raises(DriveError, match="face: pipeline does not go with engine pgbench"):
        drive_pgbench(plays(RUN), THERE, replace(TPCB, face="pipeline"), PROTOCOL)


def test_logs_lie_in_memory_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgbench, "_ROOM_BYTES", 1 << 60)
    assert pgbench._log_folder() == Path("/tmp")
    monkeypatch.setattr(pgbench, "_ROOM_BYTES", 0)
    assert pgbench._log_folder() in (Path("/dev/shm"), Path("/tmp"))
    assert pgbench._log_folder().is_dir()
