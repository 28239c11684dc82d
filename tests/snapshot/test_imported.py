"""What people read of results of other tools: one client, several, and what was asked for."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

import pgdyno
from tests.data.imported import FOLDER


@pytest.mark.parametrize(
    "names",
    [
        ("hammerdb-4.9-cli.txt",),
        ("go-tpc-1-plain.txt",),
        ("ycsb-0.17-text.txt",),
        ("pgbench-18-tpcb.txt", "pgbench-15-tpcb.txt"),
        ("benchmarksql-5.0-runInfo.csv", "benchmarksql-5.0-result.csv"),
        ("field-six-stages.txt",),
    ],
    ids=lambda names: names[0],
)
def test_what_is_printed(names: tuple[str, ...], snapshot: SnapshotAssertion) -> None:
    found = pgdyno.import_results([FOLDER / name for name in names])
    assert "\n".join(found.lines()) == snapshot


def test_a_ratio_that_was_asked_for(snapshot: SnapshotAssertion) -> None:
    names = ("benchmarksql-4.1-console.txt", "go-tpc-1-plain.txt")
    found = pgdyno.import_results([FOLDER / name for name in names])
    assert "\n".join(found.lines("nopm_ended")) == snapshot
