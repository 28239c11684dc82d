"""Generated pages are current."""

from __future__ import annotations

from pathlib import Path

from pgdyno.api.reference import page as run_file_page
from pgdyno.catalog.reference import render
from pgdyno.imports.reference import page as traps_page
from pgdyno.loader.reference import page

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_page_of_tpcc_is_current() -> None:
    assert (REFERENCE / "tpcc.md").read_text() == page() + "\n", "run `make reference`"


def test_the_page_of_knobs_is_current() -> None:
    assert (REFERENCE / "knobs.md").read_text() == render(), "run `make reference`"


def test_the_page_of_tpcc_lists_every_condition() -> None:
    text = page()

    assert all(f"### {number}. " in text for number in range(1, 13))
    assert "## Deviations" in text


def test_the_page_of_traps_is_current() -> None:
    assert (REFERENCE / "traps.md").read_text() == traps_page(), "run `make reference`"


def test_the_page_of_run_files_is_current() -> None:
    assert (REFERENCE / "run-file.md").read_text() == run_file_page(), "run `make reference`"
