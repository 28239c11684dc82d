"""The plan after a field report, and beside it what BenchmarkSQL printed of another database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.test_run import assert_nothing_left, pgdyno
from tests.data.imported import FOLDER

pytestmark = [pytest.mark.cluster, pytest.mark.wide]

PLAN = Path(__file__).parents[2] / "plans/benchmarksql-9.5.toml"
SMALL = (
    "workload.warehouses=1", "protocol.rounds=1", "protocol.warmup_s=0.5", "protocol.window_s=2",
)  # fmt: skip
WARNED = (
    "2 transactions failed, and tpmC and tpmTOTAL count them",
    "more than the 12.86 that keying and think times allow",
    "36% of Payments, the text asks for 43%",
    "it is one run",
)
UNLIKE = {
    "measured": "2016-01-10", "runs": "1", "what a crash may take": "not told",
    "settings of the server": "not told", "database": "oracle", "warehouses": "1,000",
    "clients": "96", "duration, s": "600",
}  # fmt: skip


def report(out: Path) -> dict[str, Any]:
    """The facts of a run, as the command line writes them."""
    written = pgdyno("report", out, "--format", "json").stdout.strip()
    found: dict[str, Any] = json.loads(Path(written).read_text())
    return found


def test_the_report_shows_both_with_what_a_careful_reader_would_say(
    folder: Path, home_env: Path
) -> None:
    out = folder / "run.sqlite"
    settings = [word for one in SMALL for word in ("--set", one)]
    pgdyno("run", PLAN, "--quick", *settings, "--out", out)
    before = report(out)

    pgdyno("import", FOLDER / "benchmarksql-5.0-console-oracle.txt", "--into", out)
    after = report(out)
    page = Path(pgdyno("report", out, "--format", "md").stdout.strip()).read_text()

    changed = {name for name, value in after.items() if value != before[name]}
    assert changed == {"imported", "imported_conditions"}, "what is ours does not rest on it"
    section = page[page.index("## Results of other tools") :].partition("\n## ")[0]
    assert "118,204" in section
    for stage in after["stages"]:
        assert f"{stage['name']}, ours" in section
    for said in WARNED:
        assert said in section
    lines = {line["what"]: line for line in after["imported_conditions"]["lines"]}
    assert {name: lines[name]["theirs"] for name in UNLIKE} == {
        name: [value] for name, value in UNLIKE.items()
    }
    assert lines["database"]["ours"].startswith("PostgreSQL ")
    assert "D4" in lines["what a crash may take"]["ours"]
    assert "New-Orders in the mix, %" not in lines, "the plan has the mix of the report"
    assert_nothing_left(home_env)
