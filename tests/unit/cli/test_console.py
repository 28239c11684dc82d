"""Where lines are broken: at a terminal's width, at COLUMNS, or not at all."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pgdyno.analysis.judged import plan_in
from pgdyno.cli import console
from pgdyno.cli.live_view import LiveView
from pgdyno.model.progress import RunBegun, TrialEnded
from pgdyno.store import RunFile
from tests.data.miniature import write_miniature
from tests.waiting import DEADLINE_S

LONG = "a sentence of the kind that somebody looks for, " * 4 + "and its end"


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    def prints(printed: object, columns: str | None = None) -> str:
        monkeypatch.delenv("COLUMNS", raising=False)
        if columns is not None:
            monkeypatch.setenv("COLUMNS", columns)
        stream = io.StringIO()
        console._console(stream).print(printed)
        return stream.getvalue()

    return prints


@pytest.mark.parametrize(
    "printed",
    [LONG, Text(LONG), Group(Text(LONG), "short"), Group(Group("short", LONG)),
     Group(Padding(Text(LONG), (0, 0, 0, 2)))],
    ids=["words", "text", "group", "nested", "indented"],
)  # fmt: skip
def test_a_sentence_in_a_pipe_is_one_line(piped: Callable[..., str], printed: object) -> None:
    lines = piped(printed).splitlines()
    assert [line.strip() for line in lines if len(line) > 20] == [LONG]


@dataclass(frozen=True)
class Needed:
    """A record, as the API gives some."""

    size_bytes: int

    def __str__(self) -> str:
        return f"{self.size_bytes} bytes are needed"


@pytest.mark.parametrize("columns", [None, "60"])
def test_a_record_is_printed_as_its_text(piped: Callable[..., str], columns: str | None) -> None:
    assert piped(Needed(7), columns) == "7 bytes are needed\n"


def test_an_indent_stays(piped: Callable[..., str]) -> None:
    assert piped(Padding(Text(f"{LONG}\nb"), (0, 0, 0, 2))) == f"  {LONG}\n  b\n"


def test_a_table_in_a_pipe_has_the_width_of_our_files(piped: Callable[..., str]) -> None:
    table = Table()
    table.add_row(LONG)
    assert max(map(len, piped(table).splitlines())) == 100


def test_a_word_too_long_for_its_column_goes_on_below(piped: Callable[..., str]) -> None:
    address = "https://www.postgresql.org/docs/18/" + "runtime-config-wal-" * 6 + "end"
    table = Table()
    for _ in ("source", address):
        table.add_column()
    table.add_row("source", address)
    for printed in (table, Group("above", Padding(table, (0, 0, 0, 2)))):
        said = "".join(re.sub(r"[^\w:/.-]", "", line) for line in piped(printed, "60").split())
        assert address in said.replace("source", "")


@pytest.mark.parametrize("columns", ["60", "132"])
def test_columns_say_where_lines_are_broken(piped: Callable[..., str], columns: str) -> None:
    table = Table()
    table.add_row(LONG)
    for printed in (LONG, Group(Text(LONG)), table):
        widths = [len(line) for line in piped(printed, columns).splitlines()]
        assert len(widths) > 1
        assert max(widths) <= int(columns)


def test_the_rest_of_an_indented_line_stands_further_in(piped: Callable[..., str]) -> None:
    for printed in (Text(f"head\n  {LONG}\nend"), Group(Text("head"), f"  {LONG}", Text("end"))):
        head, first, *further, end = piped(printed, "60").splitlines()
        assert (head, end) == ("head", "end")
        assert first.startswith("  a sentence")
        assert all(re.match(r" {4}\S", line) for line in further)
        assert " ".join(line.strip() for line in (first, *further)) == LONG
    keys = Text(f"  {LONG}", no_wrap=True, overflow="ignore")
    script = piped(Group(keys), "60")
    assert script == f"  {LONG}\n", "a script has the lines that it was given, whole"


@pytest.mark.parametrize("columns", ["", "0", "-5", "wide"])
def test_columns_that_are_no_number_say_nothing(piped: Callable[..., str], columns: str) -> None:
    assert piped(LONG, columns) == f"{LONG}\n"


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("size", ["²", "٣", "wide", ""])
def test_a_size_that_is_no_number_is_none(
    monkeypatch: pytest.MonkeyPatch, size: str, is_terminal: bool
) -> None:
    for name in ("COLUMNS", "LINES"):
        monkeypatch.setenv(name, size)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    shown = console._console(stream)

    shown.print("seen")
    assert shown.size.width > len("seen")
    assert stream.getvalue().strip() == "seen"


@pytest.fixture
def error_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], str]:
    """What is printed of an error with two complaints and a command, at a width or in a pipe."""

    def printed(columns: str | None) -> str:
        monkeypatch.delenv("COLUMNS", raising=False)
        if columns is not None:
            monkeypatch.setenv("COLUMNS", columns)
        stream = io.StringIO()
        monkeypatch.setattr(console, "stderr", console._console(stream))
        console.say_error(f"two errors\n  one: {LONG}\n  two: {LONG}\n    {COMMAND}", LONG)
        return stream.getvalue()

    return printed


COMMAND = "GRANT pg_checkpoint TO a_role_of_a_long_name, another_role_of_a_long_name, and_a_third;"


def test_complaints_are_told_apart_where_a_terminal_breaks_them(
    error_at: Callable[[str | None], str],
) -> None:
    lines = error_at("60").splitlines()
    begins = [line.split()[0] for line in lines if line.startswith(("error:", "hint:", "  - "))]
    assert begins == ["error:", "-", "-", "hint:"]
    assert all(line.startswith((" ", "error:", "hint:")) for line in lines)
    assert COMMAND in [line.strip() for line in lines], "what is to be copied has one line"


@pytest.mark.parametrize("columns", [None, "60"])
def test_a_tab_of_a_library_is_no_letter(
    monkeypatch: pytest.MonkeyPatch, columns: str | None
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    stream = io.StringIO()
    monkeypatch.setattr(console, "stderr", console._console(stream))
    console.say_error("connection refused\n\tIs the server running?", None)
    assert "\\t" not in stream.getvalue()
    assert "Is the server running?" in stream.getvalue()


def test_an_error_in_a_pipe_has_a_line_for_each_complaint(
    error_at: Callable[[str | None], str],
) -> None:
    assert error_at(None).splitlines() == [
        "error: two errors", f"    one: {LONG}", f"    two: {LONG}", f"      {COMMAND}",
        f"hint: {LONG}",
    ]  # fmt: skip


@pytest.mark.parametrize(("todo", "is_told"), [(0, True), (4, False)])
def test_who_goes_on_with_a_whole_run_is_told_so(tmp_path: Path, todo: int, is_told: bool) -> None:
    path = tmp_path / "run.sqlite"
    with RunFile.read(write_miniature(path)) as run:
        plan = plan_in(run.info())
    stream = io.StringIO()
    with LiveView(Console(file=stream, width=100)) as view:
        view(RunBegun(path, plan, todo))
    assert ("nothing is measured" in stream.getvalue()) is is_told


def test_lines_of_trials_stand_below_each_other_however_long_names_are(tmp_path: Path) -> None:
    """The plan that `pgdyno init` writes has a stage `synchronous_commit-off`."""
    path = tmp_path / "run.sqlite"
    with RunFile.read(write_miniature(path)) as run:
        plan, (first, second, *_) = plan_in(run.info()), run.trials()
    second = replace(second, stage="synchronous_commit-off", round=10)
    named = replace(plan.trials[1], stage=second.stage, round=second.round)
    plan = replace(plan, trials=(plan.trials[0], named, *plan.trials[2:]))
    stream = io.StringIO()
    with LiveView(Console(file=stream, width=120)) as view:
        for event in (RunBegun(path, plan, 2), TrialEnded(first), TrialEnded(second)):
            view(event)
    lines = [line for line in stream.getvalue().splitlines() if line.startswith("trial ")]
    assert len(lines) == 2
    assert len({line.index(" NOPM") for line in lines}) == 1


def test_these_tests_have_nothing_of_the_terminal_they_are_begun_in() -> None:
    begins = f"pytest.main(['--collect-only', '-qq', '-p', 'no:cacheprovider', {__file__!r}])"
    program = f"import pytest; {begins}; from pgdyno.cli import console"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; print(console.stdout.keeps_lines, console.stdout.width,"
         " console.stdout.is_terminal)"],
        env=os.environ | {"COLUMNS": "40", "FORCE_COLOR": "1"}, capture_output=True, text=True,
        check=True, timeout=DEADLINE_S,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "True 100 False", done.stdout + done.stderr
