"""The report of a run without a finished trial: nothing is good there, and nothing measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.analysis.run import analyse
from pgdyno.report.markdown import render
from pgdyno.store import RunFile
from tests.data.miniature import write_miniature

PLANNED = tuple(range(1, 10))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nothing")
    return write_miniature(folder / "run.sqlite", invalid=(), planned=PLANNED)


def test_no_check_of_what_was_measured_is_clear(path: Path) -> None:
    with RunFile.read(path) as run:
        facts = analyse(run)
    assert facts.trials_finished == 0
    verdicts = {one.ident: one.verdict for one in facts.mistakes}
    of_measurements = ("E1", "E4", "E6", "E7", "E8", "E9", "E10", "E11")
    assert {verdicts[one] for one in of_measurements} == {"unknown"}
    assert verdicts["E3"] != "unknown", "the plan alone shows it"
    assert verdicts["E14"] == "finding"


def test_no_sentence_claims_a_measurement(path: Path) -> None:
    with RunFile.read(path) as run:
        text = render(analyse(run))
    for claim in (
        "was read back from the running server",
        "misses 0 of",
        "were set up alike",
    ):
        assert claim not in text
    assert "No stage was held against the 23 requirements: no trial finished." in text
