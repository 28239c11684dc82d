"""The terminal's summary: whole at every width, and a table for each load."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from pgdyno.analysis.facts import Facts, NoiseFloor, StageFacts
from pgdyno.analysis.loads import loads, main_kinds
from pgdyno.model.workload import Tpcc
from pgdyno.report import summary
from pgdyno.report.document import Table
from pgdyno.report.sections import latency
from pgdyno.report.sections.stages import section
from tests.data.miniature import CHARACTERS, MIX, WORKLOAD
from tests.data.pages import LONG
from tests.unit.conftest import analysed

INITDB, TUNED, ASYNC = CHARACTERS


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """Two loads, the second of another kind of transaction."""
    path = tmp_path_factory.mktemp("loads") / "run.sqlite"
    other = replace(WORKLOAD, tpcc=Tpcc(10, mix={**MIX, "payment": 1.0}))
    paying, twice = (
        replace(one, stage=replace(one.stage, name=name, workload=other))
        for name, one in (("paying", INITDB), ("twice", ASYNC))
    )
    found = analysed(path, characters=(INITDB, TUNED, paying, twice), invalid=())
    stages = (*found.stages[:2], *map(_without_new_orders, found.stages[2:]))
    return replace(found, stages=stages)


def _without_new_orders(stage: StageFacts) -> StageFacts:
    return replace(stage, latency=tuple(one for one in stage.latency if one.kind != "new_order"))


def printed(facts: Facts, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(summary.render(facts))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def names(stages: Sequence[StageFacts]) -> list[str]:
    return [stage.name for stage in stages]


def test_what_twins_were_measured_for_is_told_with_the_answer(facts: Facts) -> None:
    floor = NoiseFloor(0.02, 0.01, 0.03, "identical stages differ", (), ((0.01, None), (0.1, 4)))
    lines = printed(replace(facts, noise_floor=floor), 120)

    assert "Noise floor: identical stages differ." in lines
    assert any(line.startswith("To see a difference with 80% chance takes: ") for line in lines)
    assert not any("Noise floor" in line for line in printed(facts, 120))


def test_each_load_has_a_table_of_its_own(facts: Facts) -> None:
    lines = printed(facts, 120)
    assert list(map(names, loads(facts))) == [["initdb", "tuned"], ["paying", "twice"]]
    heads = [line for line in lines if line.lstrip().startswith("stage ")]
    assert [("to initdb" in head, "to paying" in head) for head in heads] == [
        (True, False), (False, True)
    ]  # fmt: skip


def test_each_kind_that_stands_first_has_its_latency(facts: Facts) -> None:
    kinds = {kind: names(stages) for kind, stages in main_kinds(facts).items()}
    assert kinds == {"new_order": ["initdb", "tuned"], "payment": ["paying", "twice"]}
    lines = printed(facts, 120)
    (at,) = (n for n, line in enumerate(lines) if line.startswith(" Payment"))
    assert not [line for line in lines[at + 2 : at + 4] if "–" in line]
    tables = [one for one in latency.section(facts).blocks if isinstance(one, Table)]
    assert [[row[0].text for row in table.rows] for table in tables[:2]] == list(kinds.values())


@pytest.mark.parametrize("letters", [6, 16, 31])
@pytest.mark.parametrize("width", [80, 100, 120])
def test_nothing_is_cut_at_any_width(facts: Facts, width: int, letters: int) -> None:
    stages = tuple(
        replace(
            stage, name=f"{LONG[:letters]}-{stage.name}",
            to_first=stage.to_first and replace(
                stage.to_first, low=1.234, high=123.456, verdict="undecided", rounds_needed=629,
                base=f"{LONG[:letters]}-{stage.to_first.base}",
            ),
        )
        for stage in facts.stages
    )  # fmt: skip
    lines = printed(replace(facts, stages=stages), width)
    assert not [line for line in lines if "…" in line]
    assert max(map(len, lines)) <= width
    said = " ".join(" ".join(lines).split())
    assert said.count("undecided,") == 2, "a column that runs out of the terminal is lost"
    assert "629" in said


@pytest.mark.parametrize("width", [72, 80, 100])
def test_a_name_is_broken_after_a_hyphen_and_not_within_a_part(facts: Facts, width: int) -> None:
    """At 100 columns the last letter of `memory-read-write` stood alone on the next line."""
    stages = tuple(
        replace(
            stage, name=f"memory-{stage.name}-write",
            to_first=stage.to_first and replace(
                stage.to_first, low=0.001, high=433.292, verdict="undecided", rounds_needed=629,
                base="here-read-write",
            ),
        )
        for stage in facts.stages
    )  # fmt: skip
    lines = printed(replace(facts, stages=stages), width)

    begun = [line.split()[0] for line in lines if line.startswith(" memory-")]
    assert begun
    assert all(one.endswith(("-", "-write")) for one in begun), "a part is torn"


def test_a_heading_names_the_rate_of_the_intervals_below_it(facts: Facts) -> None:
    """Ranks of many rounds do not reach just 95%; sentences and cards tell what they do reach."""

    def ranked(stage: StageFacts) -> StageFacts:
        if stage.to_first is None:
            return stage
        return replace(stage, to_first=replace(stage.to_first, confidence=0.958))

    many = replace(facts, stages=tuple(ranked(stage) for stage in facts.stages))
    heads = [line for line in printed(many, 120) if line.lstrip().startswith("stage ")]
    assert heads
    assert all("95.8% interval" in line for line in heads)
    (table, *_) = [one for one in section(many).blocks if isinstance(one, Table)]
    assert table.caption.endswith("with 95.8% interval.")


def test_what_limits_the_answer_is_said_once(facts: Facts) -> None:
    fact = "trials of one stage differ with where the scheduler placed sessions"
    placed = replace(facts, placement=replace(facts.placement, verdict="finding", fact=fact))
    assert not any(fact in line for line in printed(placed, 400))  # the answer has it, made before
