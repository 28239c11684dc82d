"""Plans that are there without a checkout, and a first one's own, through the command line."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import pgdyno
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.cluster.test_run import pgdyno as command
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]


def answered(
    folder: Path, *answers: str, given: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """`pgdyno init` with some options given, and these lines typed."""
    return subprocess.run(
        [sys.executable, "-m", "pgdyno", "init", *given],
        input="".join(f"{line}\n" for line in answers), cwd=folder,
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip


def test_packaged_plans_are_listed_and_known_by_name_anywhere(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [row["name"] for row in pgdyno.plans().rows()]
    assert names == sorted(path.stem for path in (ROOT / "plans").glob("*.toml"))
    listed = command("plans").stdout
    assert all(str(name) in listed for name in names)
    monkeypatch.chdir(folder)
    assert "How much faster is PostgreSQL here" in command("run", "demo", "--dry-run").stdout
    assert pgdyno.load_plan("demo").command == "pgdyno run demo"


@pytest.mark.wide
def test_a_file_of_ones_own_is_told_from_a_packaged_plan_of_its_name(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    Path("demo").write_text('name = "mine"\nquestion = "?"\n[[stage]]\nname = "one"\nwhy = "."\n')
    assert pgdyno.load_plan("./demo").name == "mine"
    assert pgdyno.load_plan("demo").record.question.startswith("How much faster is PostgreSQL here")
    error = command("run", "../plans/demo", "--dry-run", code=2).stderr
    assert "cannot be read" in error


@pytest.mark.wide
def test_three_answers_make_a_plan_that_can_be_carried_out(folder: Path, home_env: Path) -> None:
    done = answered(folder, "", "2", "wal_compression=on")
    assert done.returncode == 0, done.stderr
    assert "next: pgdyno run first.toml --dry-run" in done.stdout
    plan = pgdyno.load_plan(folder / "first.toml")
    assert [stage.name for stage in plan.stages] == ["baseline", "wal_compression-on"]
    assert plan.record.workload.tpcc is not None
    assert plan.record.workload.tpcc.warehouses == 2
    assert plan.record.protocol.stop == "decided"
    assert plan.record.protocol.checkpoints == "cycles", "a plan of ours ends with no red light"
    assert plan.record.protocol.lowest_rung == plan.stages[1].rung == "D1"
    before = (folder / "first.toml").read_bytes()
    again = answered(folder, "", "", "")
    assert again.returncode == 2
    assert "first.toml exists" in again.stderr
    assert (folder / "first.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        (("", "2", "synchronous_commit=of"), "is not among its values"),
        *(
            pytest.param(answers, says, marks=pytest.mark.wide)
            for answers, says in (
                (("", "2", "synchronous_commit"), "is not a name with a value"),
                (("", "2", 'no_such="x'), "has no such setting"),
                (("host=/nowhere", "2", "work_mem=8MB"), "no connection to host=/nowhere"),
            )
        ),
    ],
)
def test_a_wrong_answer_is_named_and_nothing_is_written(
    folder: Path, home_env: Path, answers: tuple[str, ...], says: str
) -> None:
    done = answered(folder, *answers)
    assert done.returncode != 0
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "first.toml").exists()


@pytest.mark.parametrize(
    ("given", "answers", "says", "asked"),
    [
        (("--setting", "work_mem"), (), "is not a name with a value", None),
        (("--server", "nowhere"), (), "is not embedded", None),
        ((), ("", "-2"), "-2 is no number of warehouses", "How many"),
        *(
            pytest.param((), answers, says, asked, marks=pytest.mark.wide)
            for answers, says, asked in (
                (("nowhere",), "is not embedded", "Which server"),
                (("", "many"), "many is no number of warehouses", "How many"),
            )
        ),
    ],
)
def test_a_wrong_answer_is_refused_before_the_next_question(
    folder: Path, home_env: Path, given: tuple[str, ...], answers: tuple[str, ...], says: str,
    asked: str | None,
) -> None:  # fmt: skip
    done = answered(folder, *answers, given=given)
    assert done.returncode == 2
    assert says in done.stderr
    questions = [one for one in ("Which server", "How many", "Which setting") if one in done.stderr]
    assert questions[-1:] == ([asked] if asked else [])


@pytest.mark.wide
def test_a_person_who_answers_wrongly_is_asked_again(folder: Path, home_env: Path) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"nowhere\n\n0\n2\nno_such=1\nwork_mem=8MB\n")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pgdyno", "init"], stdin=theirs, cwd=folder,
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
    finally:
        os.close(theirs)
        os.close(ours)

    assert done.returncode == 0, done.stderr
    assert [done.stderr.count(one) for one in ("Which server", "How many", "Which setting")] == [
        2, 2, 2,
    ]  # fmt: skip
    assert 'settings = { work_mem = "8MB" }' in (folder / "first.toml").read_text()


@pytest.mark.wide
def test_a_folder_of_programs_is_an_installed_server(folder: Path, home_env: Path) -> None:
    done = answered(folder, DEBIAN_BINDIR, "1", "synchronous_commit=off")
    assert done.returncode == 0, done.stderr
    plan = pgdyno.load_plan(folder / "first.toml")
    assert plan.record.target.kind == "installed"
    assert plan.record.protocol.lowest_rung == "D2"
