"""Debian's PostgreSQL source, compiled by two compilers, in the stages of one plan."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from pgdyno.store.run_file import RunFile
from tests.cluster.postgres_source import postgres_source
from tests.cluster.test_run import assert_nothing_left, pgdyno

pytestmark = [pytest.mark.cluster, pytest.mark.long]

PLAN = """
name = "compilers"
question = "Do two compilers make servers that can be compared?"

[target]
kind = "installed"
bindir = "/usr/lib/postgresql/15/bin"

[workload]
kind = "tpcc"
warehouses = 1
connections = 2
face = "procedure"

[protocol]
rounds = 1
warmup_s = 1
window_s = 2

[[stage]]
name = "debian"
why = "What the distribution compiled."

[[stage]]
name = "gcc"
why = "What we compiled."
build = "by-gcc"
settings = { work_mem = "8MB" }

[[stage]]
name = "clang"
why = "The other compiler."
build = "by-clang"
"""


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory, session_home: Path) -> dict[str, str]:
    """A build of each compiler in the session's home: name -> first line of what was printed."""
    source = postgres_source(tmp_path_factory.mktemp("source"))
    told = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGDYNO_HOME", str(session_home))
        patch.setenv("CFLAGS", "-O99 --no-such-flag")  # of the user's shell, and none of ours
        for compiler in ("gcc", "clang"):
            done = pgdyno("build", source, "--cc", compiler, "-O", "0", "--name", f"by-{compiler}")
            told[f"by-{compiler}"] = done.stdout.splitlines()[0]
    return told


def test_stages_run_on_their_builds_and_share_the_data(
    builds: dict[str, str], folder: Path, home_env: Path
) -> None:
    plan, out = folder / "plan.toml", folder / "run.sqlite"
    plan.write_text(PLAN)
    assert "PostgreSQL 15." in builds["by-gcc"]
    assert "gcc -O0; took" in builds["by-gcc"]

    dry = pgdyno("run", plan, "--dry-run").stdout
    pgdyno("run", plan, "--out", out)

    with RunFile.read(out) as run:
        trials = {trial.stage: trial.result for trial in run.finished()}
        (fixture,) = run.fixtures()
    assert trials.keys() == {"debian", "gcc", "clang"}
    assert fixture.shape.postgres_major == 15
    words = {stage: result.server for stage, result in trials.items() if result}
    assert "Debian" in words["debian"].split(",")[0]
    assert "compiled by gcc" in words["gcc"]
    assert "compiled by" in words["clang"]
    assert "clang version" in words["clang"]
    settings = {
        stage: {one.name: one.value for one in result.settings}
        for stage, result in trials.items()
        if result
    }
    assert settings["gcc"]["work_mem"] == settings["clang"]["work_mem"] == "8MB"
    facts = json.loads(pgdyno("report", out, "--format", "json", "--out", "-").stdout)
    told = {stage["name"]: stage["build"] for stage in facts["stages"]}
    assert told["debian"] is None
    assert told["clang"].startswith("build by-clang: PostgreSQL 15.")
    assert "clang -O0" in told["clang"]
    assert "build by-clang: PostgreSQL 15." in dry
    explained = {one["what"]: one["explanation"] for one in facts["differences"]}
    assert explained["build"] == "the plan gives these stages other builds"
    assert explained["what the server calls itself"] == explained["build"]
    assert_nothing_left(home_env)


def test_what_is_there_is_not_compiled_again_and_can_be_removed(
    builds: dict[str, str], folder: Path, home_env: Path
) -> None:
    kept = {one["name"]: one for one in json.loads(pgdyno("builds", "list", "--json").stdout)}
    assert kept.keys() >= builds.keys()
    gcc = kept["by-gcc"]
    assert gcc["recipe"]["optimise"] == "0"

    again = pgdyno("build", gcc["source"], "-O", "0")
    taken = pgdyno("build", gcc["source"], "-O", "1", "--name", "by-clang", code=2)
    plan = folder / "plan.toml"
    plan.write_text(PLAN)
    place = home_env / "builds" / gcc["ident"]
    subprocess.run(["cp", "-a", place, folder / "kept"], check=True)  # for whoever comes next
    try:
        pgdyno("builds", "remove", gcc["ident"][:6])
        refused = pgdyno("run", plan, code=2)
        removed = not place.exists()
    finally:
        subprocess.run(["mv", "-T", folder / "kept", place], check=True)

    assert "by-gcc: PostgreSQL 15." in again.stdout
    assert "was there already" in again.stdout
    assert "name 'by-clang' is taken by build" in " ".join(taken.stderr.split())
    assert removed
    text = " ".join(refused.stderr.split())
    assert 'stage gcc: build "by-gcc" is unknown; there are: by-clang' in text
