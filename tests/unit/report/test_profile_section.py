"""What the report says of profiles, in words and to the script of the flame graph."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.profile_facts import ProfileFacts
from pgdyno.analysis.run import analyse
from pgdyno.model.profile import KERNEL
from pgdyno.report.document import Table, Text
from pgdyno.report.flame import flame_data
from pgdyno.report.sections import profile
from pgdyno.store import RunFile
from tests.data.miniature import write_miniature
from tests.data.profiled import HZ, LACK, PER_S, SECONDS, add_profiles


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    path = tmp_path_factory.mktemp("profiled") / "run.sqlite"
    with RunFile.read(add_profiles(write_miniature(path), lacks=(LACK,))) as run:
        return analyse(run)


def found(facts: Facts) -> ProfileFacts:
    assert facts.profiles is not None
    return facts.profiles


def texts(facts: Facts) -> list[str]:
    section = profile.section(facts)
    assert section is not None
    return [block.text for block in section.blocks if isinstance(block, Text)]


def notes(facts: Facts) -> list[str]:
    section = profile.section(facts)
    assert section is not None
    tables = [block for block in section.blocks if isinstance(block, Table)]
    return [cell.note for one in tables for row in one.rows for cell in row if cell.note]


def test_a_function_that_a_stage_never_ran_called_nothing(facts: Facts) -> None:
    first, *others = found(facts).heavy
    never = replace(first.shares[0], own=0.0, total=0.0)
    idle = replace(first, shares=(never, *first.shares[1:]))
    later = replace(facts, profiles=replace(found(facts), heavy=(idle, *others)))

    assert not [note for note in notes(later) if note.startswith("0.00 ")]


def test_the_graph_has_the_words_of_the_tables_for_roles(facts: Facts) -> None:
    tree = found(facts).cpu
    assert tree is not None

    data = flame_data(tree)

    roots = [
        name for name, parent in zip(data["names"], data["parents"], strict=True) if parent < 0
    ]
    assert {data["functions"][root][0] for root in roots} == {
        "sessions (backends)", "checkpointer", "WAL writer", "load generator", "kernel threads",
    }  # fmt: skip


def test_time_without_interrupts_is_told_where_it_shows(facts: Facts) -> None:
    assert not [text for text in texts(facts) if "interrupt" in text]
    heavy = found(facts).heavy
    spin = replace(heavy[0], name="_raw_spin_unlock_irqrestore", module=KERNEL)
    later = replace(facts, profiles=replace(found(facts), heavy=(spin, *heavy)))

    (told,) = [text for text in texts(later) if "interrupt" in text]

    assert "allows them again, `_raw_spin_unlock_irqrestore`," in told


def test_it_is_told_what_one_sample_stands_for(facts: Facts) -> None:
    (told,) = [text for text in texts(facts) if text.startswith("One sample stands for ")]
    first = found(facts).stages[0]
    each_us = 1e6 / (HZ * PER_S * SECONDS * first.profiles)

    assert first.sample_us == pytest.approx(each_us)
    assert f"{each_us:.2f} µs in {first.stage}" in told


def test_a_kernel_that_was_not_seen_has_no_share(facts: Facts) -> None:
    assert "of them in the kernel" in texts(facts)[0]
    tree = found(facts).cpu
    assert tree is not None
    unseen = tuple((name, module.replace(KERNEL, "postgres")) for name, module in tree.functions)
    later = replace(facts, profiles=replace(found(facts), cpu=replace(tree, functions=unseen)))

    assert "in the kernel" not in texts(later)[0]
    assert "outside of the kernel, which was not seen" in texts(later)[0]


def test_what_could_not_be_seen_is_told_with_its_remedy(facts: Facts) -> None:
    assert f"{LACK.fact} {LACK.remedy}" in texts(facts)
