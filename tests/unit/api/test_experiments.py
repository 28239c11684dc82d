"""Kinds of experiments are found by where they lie; a kind that is not there is said so."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import get_args

import pytest

from pgdyno.api import experiments
from pgdyno.api.runs import Experiment, Format, Run, written_as
from pgdyno.model.errors import PlanError, StoreError
from pgdyno.model.manifest import HostManifest, Installation
from pgdyno.model.run import RunInfo
from pgdyno.store import RunFile

KINDS = sorted(one.name for one in iter_modules(experiments.__path__))


@pytest.mark.parametrize("name", KINDS)
def test_every_module_says_what_a_run_of_its_kind_is(name: str) -> None:
    found = import_module(f"{experiments.__name__}.{name}").EXPERIMENT

    assert isinstance(found, Experiment)
    assert "html" in found.reports, "every run has a page beside it"
    assert set(found.reports) <= set(get_args(Format))


def test_a_run_of_a_kind_that_is_not_known_is_refused(tmp_path: Path) -> None:
    info = RunInfo(
        "r1",
        1,
        "9.0.0",
        "pgdyno bisect",
        None,
        HostManifest(),
        Installation(),
        None,
        experiment="bisect",
    )
    with RunFile.create(tmp_path / "r.sqlite", info, ()):
        pass
    run = Run(tmp_path / "r.sqlite")

    for ask in (lambda: run.is_whole, lambda: run.report("md"), run.summary):
        with pytest.raises(StoreError, match="holds an experiment 'bisect', known are") as raised:
            ask()
        assert all(name in raised.value.fact for name in KINDS)


@pytest.mark.parametrize("name", ["report.pdf", "report.txt", "report.markdown"])
def test_a_report_is_not_written_as_what_it_is_not(name: str) -> None:
    """`--out report.pdf` was a page, which nothing opened."""
    with pytest.raises(PlanError, match=f"written as '{name.partition('.')[2]}'") as refused:
        written_as(name)
    assert refused.value.hint is not None
    assert "browser" in refused.value.hint


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.html", "html"), ("a.htm", "html"), ("a.md", "md"), ("a.conf", "conf"), ("a", "html"),
     ("run.2026-11-29", "html"), ("-", "html"), (None, "html")],
)  # fmt: skip
def test_a_name_tells_the_format_of_a_report(name: str | None, form: str) -> None:
    assert written_as(name) == form
