"""A profile of a real server: functions of a session by name, with its load's transactions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pgdyno.model.profile import DRIVER, KERNEL_THREADS, SERVER, Profile
from pgdyno.model.run import TrialState
from pgdyno.profiler.rights import rights_here
from pgdyno.store.profiles import profile_of
from pgdyno.store.run_file import RunFile
from tests.cluster.test_run import assert_nothing_left, pgdyno

pytestmark = pytest.mark.cluster
PLAN = """
name = "profiled"
question = "Where does the time of a transaction go?"

[workload]
kind = "tpcc"
warehouses = 1
connections = 2

[protocol]
rounds = 1
warmup_s = 0.5
window_s = 1.0
profile_s = 3

[[stage]]
name = "initdb"
why = "What everybody gets."
"""


def paths(profile: Profile) -> dict[tuple[str, ...], int]:
    """Stacks from their roles on, and how often they were met."""
    stacks, found = profile.cpu, {}
    assert stacks is not None
    for second in stacks.seconds:
        for top, count in second:
            node, path = top, []
            while node >= 0:
                path.append(stacks.functions[stacks.names[node]][0])
                node = stacks.parents[node]
            found[tuple(reversed(path))] = found.get(tuple(reversed(path)), 0) + count
    return found


def profile_in(out: Path) -> Profile:
    with RunFile.read(out) as run:
        (trial,) = run.trials()
        assert trial.state is TrialState.FINISHED, trial.reason
        assert trial.result is not None
        assert trial.result.notes == ()
        assert "profile" in trial.result.phases_s
        found = profile_of(run, trial.number)
    assert found is not None
    return found


@pytest.mark.wide
def test_a_server_the_kernel_and_the_driver_are_seen(folder: Path, home_env: Path) -> None:
    rights = rights_here()
    assert shutil.which("perf"), "no perf: apt-get install linux-perf"
    assert rights.own, rights.lacks
    plan, out = folder / "plan.toml", folder / "run.sqlite"
    plan.write_text(PLAN)

    done = pgdyno("run", plan, "--out", out)

    assert done.returncode == 0, done.stderr
    found = profile_in(out)
    assert found.lacks == rights.lacks
    assert (found.seconds, len(found.transactions)) == (3, 3)
    assert sum(found.transactions) > 0
    whose = {one.who: one for one in found.quality}
    assert set(whose) >= {SERVER, DRIVER}
    assert (KERNEL_THREADS in whose) == rights.host
    for who in (SERVER, DRIVER):
        assert whose[who].samples > 0
        assert whose[who].frames_named / whose[who].frames > 0.9
    assert whose[SERVER].user_stacks_whole / whose[SERVER].user_stacks > 0.9
    sessions = [path for path in paths(found) if path[0] == "backend"]
    assert any({"PostgresMain", "PortalRun"} <= set(path) for path in sessions)
    assert found.waiting is not None
    met = {found.waiting.functions[name] for name in found.waiting.names}
    assert {("backend", ""), ("checkpointer", ""), ("sleeping", "")} <= met
    report = pgdyno("report", out, "--format", "md", "--out", "-")
    assert "## Where the CPU time goes" in report.stdout
    assert_nothing_left(home_env)


@pytest.mark.long
def test_without_perf_the_report_says_how_to_get_it(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = folder / "bin"  # whoever runs the server may enter
    programs.mkdir()
    for one in ("/usr/bin", "/bin"):
        for program in Path(one).iterdir():
            if program.name != "perf" and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(programs))
    plan, out = folder / "plan.toml", folder / "run.sqlite"
    plan.write_text(PLAN.replace("profile_s = 3", "profile_s = 1"))

    done = pgdyno("run", plan, "--out", out)

    assert done.returncode == 0, done.stderr
    found = profile_in(out)
    assert found.cpu is None
    assert found.waiting is not None, "what processes wait in is seen without perf"
    assert "apt-get install linux-perf" in found.lacks[0].remedy
    report = pgdyno("report", out, "--format", "md", "--out", "-")
    assert "apt-get install linux-perf" in report.stdout
