"""The notebooks are executed, cell by cell, and end with a plot."""

from __future__ import annotations

from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient

from pgdyno.cli.app import COMMANDS
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster
NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.md"))


@pytest.mark.document
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda one: one.stem)
def test_a_notebook_runs_from_begin_to_end(path: Path, folder: Path, home_env: Path) -> None:
    notebook = jupytext.read(path)
    client = NotebookClient(
        notebook, timeout=int(DEADLINE_S), kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )  # fmt: skip

    client.execute()

    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(cells) > 5
    (plot,) = [out for out in cells[-1].outputs if out.output_type == "execute_result"]
    assert "plotly" in plot.data["text/html"].lower()
    assert (folder / "commits.html").is_file()


# How the notebook for users of Python does what each command does. A build takes minutes and a
# compiler: docs/guides/builds.md is about it, and executed too.
DONE_BY = {
    "demo": 'load_plan("demo")', "plans": "pgdyno.plans()", "init": "FirstPlan(",
    "run": "pgdyno.run(", "aa": "api.aa(", "resume": "pgdyno.resume(", "report": ".report(",
    "bench": "pgdyno.bench(", "load": "pgdyno.load(", "export": "api.export(",
    "check": "pgdyno.check(", "calibrate": "pgdyno.calibrate(", "knee": "pgdyno.knee(",
    "storage": "pgdyno.storage(", "knobs": "pgdyno.knobs(", "lint": "pgdyno.lint(",
    "host": "host.show(", "build": "builds.build(", "builds": "builds.builds(",
}  # fmt: skip


def test_every_command_is_done_by_the_api_alone() -> None:
    notebook = jupytext.read(NOTEBOOKS[0].with_name("python.md"))
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert DONE_BY.keys() == COMMANDS.keys()
    assert [name for name, call in DONE_BY.items() if call not in code] == []
