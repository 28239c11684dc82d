"""No variable of libpq in the user's shell reaches a server of ours, or who speaks to it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from psycopg import pq

from pgdyno.model.run import TrialState
from pgdyno.store.run_file import RunFile
from tests.cluster.test_run import assert_nothing_left, pgdyno

pytestmark = pytest.mark.cluster

# Beside those of its parameters libpq and the programs read these.
FURTHER = (
    "PGDATESTYLE", "PGTZ", "PGGEQO", "PGSYSCONFDIR", "PGLOCALEDIR", "PGSERVICEFILE", "PGDATA",
    "PGCTLTIMEOUT", "PGREQUIRESSL", "PG_COLOR", "PGREALM", "PGGSSDELEGATION",
)  # fmt: skip
PLAN = """
name = "variables"
question = "Do variables of the shell change anything?"

[target]
transport = "{}"

[workload]
kind = "tpcb"
scale = 1
connections = 2

[protocol]
rounds = 1
warmup_s = 0.0
window_s = 1.0

[[stage]]
name = "ours"
why = "Our own driver."

[[stage]]
name = "pgbench"
why = "The real pgbench."
client = {{ engine = "pgbench" }}
"""


@pytest.mark.parametrize("transport", ["socket", pytest.param("tcp", marks=pytest.mark.long)])
@pytest.mark.wide
def test_variables_of_the_shell_change_nothing(
    transport: str, folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {one.envvar.decode() for one in pq.Conninfo.get_defaults() if one.envvar}
    assert len(names) > 25
    for name in sorted(names | set(FURTHER)):
        monkeypatch.setenv(name, "nonsense=1")
    with pytest.raises(psycopg.Error):
        psycopg.connect("").close()
    plan, out = folder / "plan.toml", folder / "run.sqlite"
    plan.write_text(PLAN.format(transport))

    pgdyno("run", plan, "--out", out)

    with RunFile.read(out) as run:
        trials = run.trials()
    assert [trial.state for trial in trials] == [TrialState.FINISHED] * 2
    for trial in trials:
        assert trial.result is not None
        assert trial.result.conditions
    assert_nothing_left(home_env)
