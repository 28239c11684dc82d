"""What a run recommends: the best stage of the allowed rung, each line with what is known of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.analysis.recommended import recommended
from pgdyno.analysis.setting_facts import Recommended, RecommendedSetting, ServerSetting
from pgdyno.api import Run
from pgdyno.model.errors import PlanError, StoreError
from pgdyno.model.pooler import Pooler
from pgdyno.report.configuration import conf, diff, sql, sysctl
from pgdyno.store import RunFile
from tests.data.miniature import CHARACTERS, write_miniature

SETTING = RecommendedSetting("work_mem", "64MB", "profile tuned", "Sorts fit.", "alone ×1.1", "")
FOUND = Recommended(
    "20261121-224500-demo", "0.1.0", "PostgreSQL 18.6", "tuned", ("It gave ×1.1.",),
    (SETTING,), {"vm.swappiness": "1"},
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("run")
    return Run(write_miniature(folder / "demo.sqlite", rounds=6, invalid=()))


def lines_of(text: str) -> dict[str, str]:
    """Settings of a configuration file, with the comment behind them."""
    found = re.findall(r"^(\w+) = '[^']*'  # (.*)$", text, re.MULTILINE)
    return dict(found)


def test_the_best_stage_that_loses_nothing_is_recommended(run: Run) -> None:
    text = run.configuration()
    assert "Stage tuned gave ×" in text
    assert set(lines_of(text)) == {"effective_cache_size", "shared_buffers"}
    assert all("not measured alone" in why for why in lines_of(text).values())
    assert "25% of 23.5 GiB of memory" in lines_of(text)["shared_buffers"]


def test_a_setting_that_two_stages_differ_in_alone_has_its_own_gain(run: Run) -> None:
    why = lines_of(run.configuration(lowest_rung="D2"))["synchronous_commit"]
    assert re.match(r"alone ×1\.\d+ \(better\), 95% interval .*: async-commit against tuned;", why)


def test_a_stage_below_the_allowed_rung_is_refused(run: Run) -> None:
    with pytest.raises(PlanError, match="async-commit stands on rung D2, the lowest allowed is D1"):
        run.configuration(stage="async-commit")
    assert "synchronous_commit = 'off'" in run.configuration(stage="async-commit", lowest_rung="D2")


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        ({"stage": "nobody"}, "no stage is called 'nobody'"),
        ({"lowest_rung": "D9"}, "no rung is called 'D9'"),
        ({"form": "diff"}, "no server is named"),
        ({"form": "conf", "database": "host=x"}, "a server is named, the format is conf"),
    ],
)
def test_what_does_not_fit_is_refused(run: Run, arguments: dict[str, str], fact: str) -> None:
    with pytest.raises(PlanError, match=fact):
        run.configuration(**arguments)  # type: ignore[arg-type]


def test_where_nothing_is_better_the_first_stage_stays(tmp_path: Path) -> None:
    run = Run(write_miniature(tmp_path / "one.sqlite", rounds=1, invalid=()))
    text = run.configuration()
    assert "No stage that rung D1 allows (nothing is lost; full pages are compressed)" in text
    assert "# sets nothing" in text
    # No rung has a better one either: what takes another stage is its name.
    for lowest in ("D1", "D2", "D6"):
        text = " ".join(run.configuration(lowest_rung=lowest).replace("#", "").split())
        assert "which is therefore what this holds; --stage takes another." in text


def test_where_a_lower_rung_has_a_better_stage_a_rung_allows_it(run: Run) -> None:
    stages = [
        replace(one, to_first=one.to_first and replace(one.to_first, verdict="undecided"))
        if one.rung == "D0" else one
        for one in run.facts.stages
    ]  # fmt: skip
    with RunFile.read(run.path) as file:
        found = recommended(file, replace(run.facts, stages=tuple(stages)))
    assert found.stage == "initdb"
    assert found.sentences[0].endswith(
        "which is therefore what this holds; `--rung` allows others."
    )


def test_a_first_stage_that_was_asked_for_by_name_is_not_called_the_best(run: Run) -> None:
    text = run.configuration(stage="initdb")
    assert "# Stage tuned is shown to be better than initdb." in text
    assert "No stage that rung" not in text


def test_the_full_pages_of_a_guarded_stage_are_left_to_the_guard(tmp_path: Path) -> None:
    """Without its guard the same line loses data, and the guard refuses to arm beside it."""
    first, tuned, *others = CHARACTERS
    off = replace(tuned.stage.settings[0], name="full_page_writes", value="off")
    guarded = replace(tuned.stage, guard=True, settings=(*tuned.stage.settings, off))
    path = write_miniature(
        tmp_path / "one.sqlite", rounds=6, invalid=(),
        characters=(first, replace(tuned, stage=guarded), *others),
    )  # fmt: skip
    for form in ("conf", "sql"):
        text = Run(path).configuration(form, stage="tuned", lowest_rung="D6")
        said = " ".join(text.replace("#", "").replace("--", "").split())
        assert "so it is left out here. pgdyno guard arm turns them off" in said
        assert not re.search("^(ALTER SYSTEM SET )?full_page_writes =", text, re.MULTILINE)
        assert "shared_buffers" in text


def test_values_and_comments_stay_within_their_line() -> None:
    hostile = replace(SETTING, value="it's\\x", chosen_by="a\nwork_mem = '1TB'", why="b\nc = 'd'")
    found = replace(FOUND, settings=(hostile,), stage="a\nfsync = off", sentences=("x\ny = 'z'",))
    for text in (conf(found), sysctl(found), diff(found, {})):
        settings = [line for line in text.splitlines() if line and not line.startswith("#")]
        assert len(settings) == 1
    assert "work_mem = 'it''s\\x'" in conf(found)
    statements = [line for line in sql(found).splitlines() if line and not line.startswith("--")]
    assert len(statements) == 2


def test_lists_are_written_item_by_item() -> None:
    libraries = replace(SETTING, name="shared_preload_libraries", value='pg_prewarm, "a,b"')
    text = sql(replace(FOUND, settings=(libraries,)))
    assert "ALTER SYSTEM SET shared_preload_libraries = 'pg_prewarm', 'a,b';" in text


@pytest.mark.parametrize(("form", "mark"), [(conf, "#"), (sql, "--"), (sysctl, "#")])
def test_a_pooler_is_named_with_what_its_file_had(
    form: Callable[[Recommended], str], mark: str
) -> None:
    pooler = Pooler("transaction", 20)
    found = replace(FOUND, pooler=pooler.shown, pooler_ini=pooler.settings(64))
    text = form(found)
    assert "The load went through PgBouncer (transaction, 20 sessions), which is no setting" in text
    for line in ("pool_mode = transaction", "default_pool_size = 20", "max_client_conn = 74"):
        assert f"\n{mark}   {line}\n" in text
    assert "PgBouncer" not in form(FOUND)


def test_restarts_are_named() -> None:
    text = sql(replace(FOUND, settings=(replace(SETTING, apply="restart"),)))
    assert "-- Needs a restart: work_mem." in text


def test_a_difference_shows_both_values_and_who_set_the_running_one() -> None:
    text = diff(FOUND, {"work_mem": ServerSetting("work_mem", "4MB", "/etc/postgresql.conf:7")})
    assert "-work_mem = '4MB'  # /etc/postgresql.conf:7\n+work_mem = '64MB'  # alone" in text
    same = diff(FOUND, {"work_mem": ServerSetting("work_mem", "64MB", "default")})
    assert "# already so: 1 of 1 setting" in same
    assert "+work_mem" not in same


def test_where_nothing_is_to_be_set_nothing_is_counted() -> None:
    text = diff(replace(FOUND, settings=()), {})
    assert "# sets nothing" in text
    assert "already so" not in text


def test_a_host_that_is_not_known_has_no_settings_of_the_kernel() -> None:
    with pytest.raises(PlanError, match="does not know the host of its server"):
        sysctl(replace(FOUND, sysctl={}))


def test_it_replaces_an_earlier_one_and_nothing_else(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "demo.conf"
    run.configuration(out=out)
    run.configuration("sql", out=out)
    assert "ALTER SYSTEM" in out.read_text()
    out.write_text("port = 5433\n")
    with pytest.raises(StoreError, match="exists and is not a report"):
        run.configuration(out=out)
