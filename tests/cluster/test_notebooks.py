"""The notebooks are executed, cell by cell, and end with a plot."""

from __future__ import annotations

from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient

from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster
NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.md"))


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
