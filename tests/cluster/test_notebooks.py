"""The notebooks are executed, cell by cell, and end with a plot."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, ClassVar

import jupytext
import pytest
import typer
from nbclient import NotebookClient

from pgdyno.cli.app import COMMANDS, app
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster
NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "python.md"
NOTEBOOKS = sorted(NOTEBOOK.parent.glob("*.md"))


@pytest.mark.document
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda one: one.stem)
@pytest.mark.same_machine
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


# How the notebook for users of Python does what each command does: by a call that is executed, not
# by a word in a comment. What takes a source, a disk or another machine is called and refused.
DONE_BY = {
    "demo": "pgdyno.run", "plans": "pgdyno.plans", "init": "pgdyno.FirstPlan(…).write",
    "run": "pgdyno.run", "aa": "pgdyno.aa", "resume": "pgdyno.resume", "report": "probed.report",
    "diagnose": "pgdyno.diagnose", "next": "pgdyno.propose", "prove": "pgdyno.prove",
    "climb": "pgdyno.climb", "drill": "pgdyno.drill",
    "compare": "pgdyno.compare", "history": "pgdyno.history", "bench": "pgdyno.bench",
    "load": "pgdyno.load",
    "export": "pgdyno.export", "import": "pgdyno.import_results", "check": "pgdyno.check",
    "wal": "pgdyno.wal", "calibrate": "pgdyno.calibrate", "knee": "pgdyno.knee",
    "fleet check": "pgdyno.fleet", "storage": "pgdyno.storage", "knobs": "pgdyno.knobs",
    "lint": "pgdyno.lint",
    "host show": "pgdyno.machine.show", "host plan": "pgdyno.machine.plan",
    "host apply": "pgdyno.machine.apply", "host restore": "pgdyno.machine.restore",
    "host layout": "pgdyno.machine.layout", "build": "pgdyno.builds.build",
    "guard check": "guard.check", "guard arm": "guard.arm", "guard disarm": "guard.disarm",
    "guard status": "guard.status", "guard watch": "guard.watch", "guard unit": "guard.unit",
    "guard repair": "guard.repair", "guard rejoin": "guard.rejoin", "guard undo": "guard.undo",
    "builds list": "pgdyno.builds.builds", "builds remove": "pgdyno.builds.remove_build",
}  # fmt: skip


def calls(code: str) -> dict[str, list[ast.Call]]:
    """What is called, by how it is written; what a call returned is called by `f(…).g`."""
    found: dict[str, list[ast.Call]] = {}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call):
            found.setdefault(called(node.func), []).append(node)
    return found


def called(function: ast.expr) -> str:
    match function:
        case ast.Attribute(value=ast.Call() as made, attr=name):
            return f"{called(made.func)}(…).{name}"
        case _:
            return ast.unparse(function)


def code_of(path: Path) -> str:
    cells = jupytext.read(path).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def commands() -> set[str]:
    """Every command, those of groups with both of their words."""
    group: Any = typer.main.get_command(app)
    names = set()
    for name in COMMANDS:
        below = getattr(group.get_command(None, name), "commands", None)
        names |= {f"{name} {one}" for one in below} if below else {name}
    return names


def test_every_command_is_done_by_the_api_alone() -> None:
    found = calls(code_of(NOTEBOOK))
    assert DONE_BY.keys() == commands()
    assert {name: call for name, call in DONE_BY.items() if call not in found} == {}
    (demo,) = [one for one in found["pgdyno.load_plan"] if ast.unparse(one.args[0]) == "'demo'"]
    ran = [ast.unparse(one.args[0]) for one in found["pgdyno.run"]]
    assert {"plan", "demo"} <= set(ran)
    assert demo


def test_a_name_in_a_comment_is_no_call() -> None:
    code = "first = pgdyno.FirstPlan().text()  # builds.build(source)\n'pgdyno.run(plan)'\n"
    assert calls(code).keys() == {"pgdyno.FirstPlan", "pgdyno.FirstPlan(…).text"}


class Listening(NotebookClient):
    """Keeps what a kernel shows, also what is replaced later."""

    shown: ClassVar[list[tuple[str, str]]] = []

    def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
        content = msg["content"]
        if msg["msg_type"] in ("display_data", "update_display_data"):
            self.shown.append((msg["msg_type"], content["data"].get("text/html", "")))
        return super().process_message(msg, cell, cell_index)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.wide
def test_a_line_shows_how_far_a_call_is_and_goes_with_it(folder: Path) -> None:
    cells = [
        "import pgdyno\nexported = pgdyno.export('shown', warehouses=2)",
        "told = []\nexported = pgdyno.export('told', warehouses=1, on_event=told.append)\n"
        "assert told",
    ]
    notebook = jupytext.reads("".join(f"```python\n{one}\n```\n\n" for one in cells), "md")
    client = Listening(
        notebook, timeout=int(DEADLINE_S), kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )  # fmt: skip
    Listening.shown.clear()

    client.execute()

    kinds, texts = zip(*Listening.shown, strict=True)
    assert kinds[0] == "display_data"
    assert set(kinds[1:]) == {"update_display_data"}, "one line, which the second cell has not"
    assert "rows, " in texts[0]
    assert texts[-1] == ""
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    assert [out.output_type for out in outputs] == ["display_data"], "and nothing is printed"
