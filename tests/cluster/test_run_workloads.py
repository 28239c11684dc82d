"""Plans of every kind of workload, and clients that differ from stage to stage, on real servers."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from pgdyno.analysis.judge import window_end
from pgdyno.model.durability import Rung
from pgdyno.model.run import TrialRecord, TrialResult, TrialState
from pgdyno.model.wording import plural
from pgdyno.store.run_file import RunFile
from tests.cluster.conftest import cluster_apart
from tests.cluster.test_run import assert_nothing_left, pgdyno

pytestmark = pytest.mark.cluster

HEAD = """
name = "small"
question = "Is every workload driven as the plan says?"

[protocol]
rounds = 1
warmup_s = 0.5
window_s = 1.0

[workload]
connections = 2
"""


@pytest.fixture
def plan(folder: Path, home_env: Path) -> Path:
    assert home_env.is_dir()
    return folder / "small.toml"


def measured(out: Path) -> list[tuple[TrialRecord, TrialResult]]:
    """The trials of a run file, all of them with numbers that add up."""
    with RunFile.read(out) as run:
        trials = [(trial, trial.result) for trial in run.trials()]
    found = []
    for trial, result in trials:
        assert result is not None, trial.reason
        for kind in result.kinds:
            for counts in (kind.window, kind.run):
                assert counts.due == (
                    counts.succeeded + counts.rolled_back + counts.failed + counts.skipped
                    + counts.unfinished
                )  # fmt: skip
        found.append((trial, result))
    return found


FACES = """kind = "tpcc"
warehouses = 2
home = "random"

[[stage]]
name = "statement"
why = "A round trip for each statement."

[[stage]]
name = "pipeline"
why = "As few as the data allow."
client = { face = "pipeline" }

[[stage]]
name = "procedure"
why = "One call."
client = { face = "procedure", terminals = 20 }
"""


UNLOGGED = """kind = "tpcc"
warehouses = 1
foreign_keys = true

[[stage]]
name = "logged"
why = "As tables are."

[[stage]]
name = "unlogged"
why = "They write no WAL."
unlogged = true
"""


@pytest.mark.long
def test_unlogged_tables_are_a_fixture_of_their_own(
    plan: Path, folder: Path, home_env: Path
) -> None:
    head = HEAD.replace("[protocol]", '[protocol]\nlowest_rung = "D6"')
    plan.write_text(head + UNLOGGED)
    out = folder / "run.sqlite"

    pgdyno("run", plan, "--out", out)

    found = {trial.stage: result for trial, result in measured(out)}
    logged, unlogged = found["logged"], found["unlogged"]
    with RunFile.read(out) as run:
        shapes = {one.shape.unlogged for one in run.fixtures()}
    assert shapes == {None, True}
    assert logged.durability is not None
    assert unlogged.durability is not None
    assert (logged.durability.lowest, unlogged.durability.lowest) == (Rung.D0, Rung.D6)
    (loss,) = [one for one in unlogged.durability.losses if one.rung is Rung.D6]
    # Read back: all nine tables, and not the one that remembers the load.
    assert loss.what.startswith("unlogged tables: ")
    assert "and 6 more" in loss.what
    assert loss.source.startswith("pg_class")
    wal = {
        name: one.deltas["wal.bytes"] / sum(kind.window.succeeded for kind in one.kinds)
        for name, one in found.items()
    }
    assert wal["unlogged"] < wal["logged"] / 4, wal
    assert_nothing_left(home_env)


@pytest.mark.long
def test_a_stage_has_a_face_of_its_own(plan: Path, folder: Path, home_env: Path) -> None:
    plan.write_text(HEAD + FACES)
    out = folder / "run.sqlite"

    done = pgdyno("run", plan, "--out", out)

    assert "procedure" in done.stdout
    trips = {}
    for trial, result in measured(out):
        assert trial.state is TrialState.FINISHED, trial.reason
        assert result.headline == "NOPM"
        assert len(result.conditions) == 12
        assert all(condition.ok for condition in result.conditions)
        trips[trial.stage] = result.round_trips_per_transaction
    assert trips["procedure"] < trips["pipeline"] < trips["statement"] / 3
    with RunFile.read(out) as run:
        info = run.info()
        assert {name: one.face for name, one in info.stages.items()} == {
            "statement": "statement", "pipeline": "pipeline", "procedure": "procedure",
        }  # fmt: skip
        assert info.plan.stages[2].workload.terminals == 20
    assert_nothing_left(home_env)


TPCB = """kind = "tpcb"
scale = 1
databases = 2

[[stage]]
name = "tpcb"
why = "pgbench's own, in two databases."

[[stage]]
name = "open"
why = "The same, at a rate that is easy to keep."
client = { arrivals = { rate = 50, spacing = "poisson" }, face = "pipeline" }
"""


def check_tpcb(out: Path) -> None:
    for trial, result in measured(out):
        assert trial.state is TrialState.FINISHED, trial.reason
        assert (result.nopm, result.headline) == (None, "tps")
        assert len(result.parts) == 2
        halves = [sum(kind.window.succeeded for kind in part.kinds) for part in result.parts]
        assert all(halves)
        assert sum(halves) == sum(kind.window.succeeded for kind in result.kinds)
        assert result.conditions
        assert all(condition.ok for condition in result.conditions)
        if trial.stage == "open":  # 50/s in each database, for a second or a little more
            assert 50 < sum(kind.window.due for kind in result.kinds) < 160


@pytest.mark.long
def test_pgbenchs_workload_in_two_databases(plan: Path, folder: Path, home_env: Path) -> None:
    plan.write_text(HEAD + TPCB)
    out = folder / "run.sqlite"

    done = pgdyno("run", plan, "--out", out)

    check_tpcb(out)
    assert "tps" in done.stdout
    assert "NOPM" not in done.stdout
    facts = json.loads(pgdyno("report", out, "--format", "json", "--out", "-").stdout)
    assert facts["headline"] == "tps"
    assert [stage["nopm"] for stage in facts["stages"]] == [None, None]
    assert all(stage["throughput"]["median"] > 0 for stage in facts["stages"])
    assert_nothing_left(home_env)


@pytest.mark.long
def test_two_databases_on_a_running_server(plan: Path, folder: Path) -> None:
    plan.write_text(HEAD + TPCB)
    out = folder / "run.sqlite"

    with cluster_apart("embedded-18", "socket") as cluster:
        connection = cluster.connection()
        conninfo = f"host={connection.host} port={connection.port} user={connection.user}"
        pgdyno("run", plan, "--out", out, "--conninfo", f"{conninfo} dbname=postgres")
        with psycopg.connect(**connection.arguments()) as session:
            names = session.execute("SELECT datname FROM pg_database").fetchall()

    check_tpcb(out)
    assert not [name for (name,) in names if name.startswith("pgdyno_trial")]


MIX = """kind = "mix"
file = "queue.toml"
setup = "queue.sql"

[[stage]]
name = "good"
why = "Keeps its invariant."

[[stage]]
name = "bad"
why = "Breaks it."
client = { file = "broken.toml", face = "pipeline" }
"""
QUEUE = """
[[transactions]]
name = "take"
statements = [{ sql = "UPDATE queue SET state = STATE WHERE id = :id", rows = 1 }]
params.id = { type = "bigint", zipf = [1, 1000, 1.1] }

[[invariants]]
title = "states are 0 or 1"
sql = "SELECT id, state FROM queue WHERE state NOT IN (0, 1)"
"""
SETUP = "CREATE TABLE queue (id bigint PRIMARY KEY, state int NOT NULL);"
ROWS = "INSERT INTO queue SELECT id, 0 FROM generate_series(1, 1000) id;"


@pytest.mark.long
def test_a_mix_with_its_own_tables_and_invariants(plan: Path, folder: Path) -> None:
    plan.write_text(HEAD + MIX)
    (folder / "queue.toml").write_text(QUEUE.replace("STATE", "1"))
    (folder / "broken.toml").write_text(QUEUE.replace("STATE", "2"))
    (folder / "queue.sql").write_text(f"{SETUP}\n{ROWS}\n")
    out = folder / "run.sqlite"

    pgdyno("run", plan, "--out", out, code=1)

    (good, result), (bad, _) = measured(out)
    assert good.state is TrialState.FINISHED, good.reason
    assert [kind.kind for kind in result.kinds] == ["take"]
    assert result.tps > 0
    assert bad.state is TrialState.INVALID
    assert "condition 1 (states are 0 or 1) is violated" in str(bad.reason)


@pytest.mark.long
def test_a_setup_that_fails_leaves_no_fixture(plan: Path, folder: Path, home_env: Path) -> None:
    plan.write_text(HEAD + MIX)
    for name in ("queue.toml", "broken.toml"):
        (folder / name).write_text(QUEUE.replace("STATE", "1"))
    (folder / "queue.sql").write_text("CREATE TABLE queue (id bigint); SELECT 1 / 0;")
    before = set((home_env / "fixtures").glob("[!.]*"))  # beside the folder's own mark

    done = pgdyno("run", plan, "--out", folder / "run.sqlite", code=5)

    assert "queue.sql failed: division by zero" in " ".join(done.stderr.split())
    assert set((home_env / "fixtures").glob("[!.]*")) == before
    assert_nothing_left(home_env)


SCRIPT = """kind = "script"
file = ["read.sql@3", "write.sql"]
data = "tpcb"
scale = 1
variables = { step = 5 }

[[stage]]
name = "both"
why = "Reads and writes."

[[stage]]
name = "write"
why = "Writes alone."
client = { file = "write.sql" }
"""
READ = """\\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
"""
WRITE = READ.replace("SELECT abalance FROM", "UPDATE").replace(
    " WHERE", " SET abalance = abalance + :step WHERE"
)


@pytest.mark.same_machine
@pytest.mark.long
def test_scripts_are_repeated_from_the_run_file_alone(plan: Path, folder: Path) -> None:
    plan.write_text(HEAD + SCRIPT)
    (folder / "read.sql").write_text(READ)
    (folder / "write.sql").write_text(WRITE)
    out = folder / "run.sqlite"

    pgdyno("run", plan, "--out", out)

    both, write = (result for _, result in measured(out))
    counts = {kind.kind: kind.window.succeeded for kind in both.kinds}
    assert counts["read.sql"] > counts["write.sql"] > 0
    assert [kind.kind for kind in write.kinds] == ["write.sql"]
    for name in ("read.sql", "write.sql"):
        (folder / name).unlink()
    assert "write" in pgdyno("resume", out).stdout


@pytest.mark.wide
def test_what_the_core_refuses_is_refused_before_anything_is_touched(
    plan: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(folder / "home"))
    monkeypatch.chdir(folder)
    plan.write_text(HEAD + SCRIPT)
    (folder / "read.sql").write_text("SELECT :nowhere;")
    (folder / "write.sql").write_text(WRITE)

    for options in (["--dry-run"], []):
        done = pgdyno("run", plan, *options, code=2)
        text = " ".join(done.stderr.split())
        assert "stage both: read.sql, line 1: variable :nowhere is never set" in text
        assert "Nothing was touched." in text
    assert not (folder / "runs").exists()
    assert not (folder / "home" / "fixtures").exists()


QUIT = """kind = "script"
file = ["stay.sql@50", "quit.sql"]

[[stage]]
name = "drill"
why = "One request in fifty ends its own session."
"""


@pytest.mark.long
def test_a_drill_counts_what_was_lost_and_is_valid(plan: Path, folder: Path) -> None:
    plan.write_text(HEAD.replace("window_s = 1.0", "window_s = 1.0\nsurvive = true") + QUIT)
    (folder / "stay.sql").write_text("SELECT 1;")
    (folder / "quit.sql").write_text("SELECT pg_terminate_backend(pg_backend_pid());")
    out = folder / "run.sqlite"

    pgdyno("run", plan, "--out", out)

    ((trial, result),) = measured(out)
    assert trial.state is TrialState.FINISHED, trial.reason
    assert result.reconnects > 0
    assert result.gaps
    lost = {kind.kind: kind.run.failed for kind in result.kinds}
    assert lost["stay.sql"] == 0
    assert lost["quit.sql"] == sum(error.count for error in result.errors) > 0
    in_window = sum(kind.window.failed for kind in result.kinds)
    in_drain = sum(
        kind.window.unfinished - (kind.window.drained or 0) - kind.window.unanswered
        for kind in result.kinds
    )
    said = window_end(result)
    # Where the machine is busy, requests without an answer are told before.
    assert (
        f"{plural(in_window + in_drain, 'request', thousands=True)} due in the window" in said.fact
    )
    assert "failed and have no time: percentiles and maximum are those of the others" in said.fact
