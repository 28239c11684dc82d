"""A report takes its losses from a drill that lies beside its run, if made on the same machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.analysis.judged import plan_in
from pgdyno.api.runs import Run
from pgdyno.model.drill import Drilled
from pgdyno.model.plan import Target
from pgdyno.model.run import RunInfo
from pgdyno.store.run_file import RunFile
from tests.data import drills
from tests.data.miniature import write_miniature


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(write_miniature(tmp_path / "run.sqlite"))


def put_drill(run: Run, ident: str, *, cuts: bool = True, **changes: object) -> None:
    """A drill of the run's plan, in the same folder, on the same machine but for some changes."""
    host = replace(run.info.host, **changes)  # type: ignore[arg-type]
    made = drills.drill(plan_in(run.info))
    info = replace(drills.INFO, ident=ident, host=host, build=run.info.build)
    with RunFile.create(run.path.with_name(f"{ident}.sqlite"), info, ()) as file:
        file.put_found("drill", made if cuts else Drilled(made.asked))


def told(run: Run) -> set[str]:
    """The drills that its stages name."""
    return {one.drill for stage in Run(run.path).facts.stages for one in stage.measured}


def test_it_is_the_newest_of_the_same_machine_that_struck_anything(run: Run) -> None:
    assert told(run) == set()
    put_drill(run, "20261101-100000-drill-a")
    put_drill(run, "20261103-100000-drill-b")
    put_drill(run, "20261104-100000-drill-c", cuts=False)
    put_drill(run, "20261105-100000-drill-d", cpus=128)
    put_drill(run, "20261106-100000-drill-e", memory_bytes=1 << 40)
    run.path.with_name("none.sqlite").write_text("This is no run file.")

    assert told(run) == {"20261103-100000-drill-b"}
    assert "20261103-100000-drill-b" in Run(run.path).report("md")


def test_another_version_of_postgresql_tells_nothing(run: Run) -> None:
    put_drill(run, "20261101-100000-drill-a")
    with RunFile.append(run.path) as file:
        build = replace(run.info.build, version_num="120022")
        file.put_found("info", replace(run.info, build=build))

    assert told(run) == set()


def test_a_server_of_somebody_else_loses_nothing_that_was_rehearsed_here(run: Run) -> None:
    put_drill(run, "20261101-100000-drill-a")
    theirs: RunInfo = replace(
        run.info,
        plan=replace(plan_in(run.info), target=Target("running", conninfo="host=db.example.org")),
    )
    with RunFile.append(run.path) as file:
        file.put_found("info", theirs)

    assert told(run) == set()


def test_one_that_is_named_stands_before_it(run: Run, tmp_path: Path) -> None:
    put_drill(run, "20261101-100000-drill-a")
    put_drill(run, "20261103-100000-drill-b")

    named = Run(run.path, losses=tmp_path / "20261101-100000-drill-a.sqlite")
    found = {one.drill for stage in named.facts.stages for one in stage.measured}
    assert found == {"20261101-100000-drill-a"}
