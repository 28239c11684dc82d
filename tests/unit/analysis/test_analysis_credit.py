"""Whose a gain is: said where a stage shows it, and said to be unknown where none does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pgdyno.analysis.facts import Facts, StageFacts
from pgdyno.model.settings import Origin, OriginKind, Setting
from tests.data.miniature import CHARACTERS, MAX_WAL, WORKLOAD, Character
from tests.unit.conftest import analysed

INITDB, TUNED, _ = CHARACTERS
PIPELINE = replace(WORKLOAD, face="pipeline")
WAL_BUFFERS = Setting("wal_buffers", "64MB", Origin(OriginKind.PLAN, "a test"))


def stage(name: str, of: Character, nopm: float, *, client: bool = False) -> Character:
    """A stage with another's settings, and the pipeline as its client."""
    load = PIPELINE if client else WORKLOAD
    return replace(of, nopm=nopm, stage=replace(of.stage, name=name, workload=load))


def answered(path: Path, *characters: Character) -> Facts:
    return analysed(path / "run.sqlite", characters=characters, invalid=())


def only(told: StageFacts) -> str:
    (sentence,) = told.credit
    return sentence


def test_client_and_server_at_once_without_a_stage_that_parts_them(tmp_path: Path) -> None:
    facts = answered(tmp_path, INITDB, stage("all", TUNED, 50_000, client=True))

    sentence = only(facts.stages[1])

    assert sentence == (
        "`all` differs from `initdb` in the client (face = pipeline instead of statement) and in"
        " the server (2 settings) at once; which part is whose is not known, as no stage changes"
        " one of them alone"
    )
    assert f" {sentence}. " in facts.answer.finding


def test_a_third_stage_parts_them_either_way(tmp_path: Path) -> None:
    everything = stage("all", TUNED, 50_000, client=True)
    for name, third in (
        ("tuned", TUNED), ("asking", stage("asking", INITDB, 38_000, client=True))
    ):  # fmt: skip
        folder = tmp_path / name
        folder.mkdir()
        facts = answered(folder, INITDB, third, everything)
        sentence = facts.stages[2].credit[0]
        client, server = {
            "tuned": ("`all` against `tuned`", "`tuned` against `initdb`"),
            "asking": ("`asking` against `initdb`", "`all` against `asking`"),
        }[name]
        first, _, second = sentence.partition("the server ×")
        assert "at once: the client gives ×" in first
        assert client in first
        assert server in second
        assert sentence in facts.answer.finding


def test_the_same_change_of_the_client_elsewhere_is_told(tmp_path: Path) -> None:
    other = replace(TUNED, stage=replace(TUNED.stage, settings=(MAX_WAL, WAL_BUFFERS)))
    facts = answered(
        tmp_path, INITDB, stage("all", TUNED, 50_000, client=True),
        stage("before", other, 30_000), stage("after", other, 41_000, client=True),
    )  # fmt: skip

    sentence = facts.stages[1].credit[0]

    assert "which part is whose is not known" in sentence
    assert "under other settings the same change of the client alone gives ×1." in sentence
    assert "`after` against `before`" in sentence


def test_the_client_alone_takes_all_of_it(tmp_path: Path) -> None:
    facts = answered(tmp_path, INITDB, stage("asking", INITDB, 40_000, client=True))
    assert only(facts.stages[1]).endswith("alone: no setting has a part in it")


def test_settings_alone_need_no_sentence(facts: Facts) -> None:
    assert [one.credit for one in facts.stages] == [(), (), ()]


def test_the_first_sentences_do_not_give_the_server_what_is_the_clients(tmp_path: Path) -> None:
    both, alone = tmp_path / "both", tmp_path / "alone"
    both.mkdir()
    alone.mkdir()
    mixed = answered(both, INITDB, stage("all", TUNED, 50_000, client=True)).answer.plain
    client = answered(alone, INITDB, stage("asking", INITDB, 50_000, client=True)).answer.plain
    server = answered(tmp_path, INITDB, TUNED).answer.plain

    assert (
        mixed[1] == "The client works in another way there, too: not all of that is the server's."
    )
    assert client[1] == (
        "All of that comes from how the client works: no setting has a part in it."
    )
    assert not [one for one in server if "client" in one]
