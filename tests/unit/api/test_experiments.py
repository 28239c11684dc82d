"""Kinds of experiments are found by where they lie; a kind that is not there is said so."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import get_args

import pytest

from pgdyno.api import experiments
from pgdyno.api.runs import Experiment, Format, Run
from pgdyno.model.errors import StoreError
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
