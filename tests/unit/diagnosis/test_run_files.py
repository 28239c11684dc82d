"""From the file alone; where it lacks what rules need, the answer is Unknown, and says why."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import pgdyno
from pgdyno.analysis.diagnosis_facts import StageDiagnosis
from pgdyno.analysis.facts import Facts
from pgdyno.cli.app import app
from pgdyno.model.errors import PgdynoError, PlanError, StoreError
from pgdyno.model.manifest import HostManifest, Installation
from pgdyno.model.run import Missing, RunInfo, TallySeries, TelemetryReport, TrialRecord
from pgdyno.report import html, markdown
from pgdyno.store import RunFile
from tests.data.met import Key, key, sessions
from tests.data.miniature import WINDOW_S, write_miniature

DATA = Path(__file__).parents[2] / "data"
FLUSHING: Mapping[Key, float] = {
    key("flush", "IO:WalSync", kind="new_order", statement="commit"): 6.0,
    key("cpu", kind="new_order", statement="district"): 1.0,
    key("client", "Client:ClientRead", state="idle"): 1.0,
}
Change = Callable[[TrialRecord], TrialRecord]


def tally_of(trial: TrialRecord, averages: Mapping[Key, float]) -> TallySeries:
    assert trial.result is not None
    return sessions(trial.result.window_ns[0] // 1_000_000_000, WINDOW_S + 1, averages)


def written(
    path: Path,
    averages: Mapping[Key, float] | None = FLUSHING,
    change: Change = lambda trial: trial,
    shorten: Callable[[TallySeries], TallySeries] = lambda tally: tally,
) -> Path:
    """A run file whose trials met these sessions; None: none were sampled."""
    write_miniature(path, invalid=())
    with RunFile.append(path) as run:
        for trial in run.finished():
            series = run.series(trial.number).values()
            found = change(_with_cpu(trial))
            tallies = [] if averages is None else [shorten(tally_of(trial, averages))]
            run.put_trial(found, series, tallies)
    return path


def _with_cpu(trial: TrialRecord) -> TrialRecord:
    """As the kernel tells it of the sessions above: one runs, none wants a CPU."""
    assert trial.result is not None
    told = {"process.backend.cpu_s": 1.0, "process.backend.wait_cpu_s": 0.01, "server.cpu_s": 1.1,
            "cpu.user_s": 1.2, "cpu.nice_s": 0.0, "cpu.system_s": 0.1, "cpu.idle_s": 2.7,
            "cpu.iowait_s": 0.0, "cpu.irq_s": 0.0, "cpu.softirq_s": 0.0,
            "cpu.steal_s": 0.0}  # fmt: skip
    deltas = {name: value * trial.result.window_s for name, value in told.items()}
    kinds = tuple(
        replace(kind, statements=tuple(_under_way(one) for one in kind.statements))
        for kind in trial.result.kinds
    )
    return replace(trial, result=replace(trial.result, deltas=trial.result.deltas | deltas,
                                         kinds=kinds))  # fmt: skip


def _under_way(one: Any) -> Any:
    return replace(one, count=10_000, ns={**one.ns, "mean": round(7.2 * WINDOW_S * 1e9 / 50_000)})


def without_statements(trial: TrialRecord) -> TrialRecord:
    """As the real pgbench leaves it."""
    assert trial.result is not None
    kinds = tuple(replace(kind, statements=()) for kind in trial.result.kinds)
    return replace(trial, result=replace(trial.result, engine="pgbench 18.6", kinds=kinds))


def without_telemetry(trial: TrialRecord) -> TrialRecord:
    assert trial.result is not None
    told = TelemetryReport("none", 0.0, 0.0, (), ())
    return replace(trial, result=replace(trial.result, deltas={}, telemetry=told))


def running_target(trial: TrialRecord) -> TrialRecord:
    """Whose processes are not ours to look at."""
    assert trial.result is not None
    missing = (Missing("processes of the server", "the server is not ours"),)
    kept = {name: value for name, value in trial.result.deltas.items()
            if not name.startswith(("process.", "server.cpu"))}  # fmt: skip
    told = TelemetryReport("default", 30.0, 0.1, (), missing)
    return replace(trial, result=replace(trial.result, deltas=kept, telemetry=told))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that lacks nothing; whoever changes it writes one of its own."""
    return written(tmp_path_factory.mktemp("run") / "run.sqlite")


@pytest.fixture(scope="module")
def facts(whole: Path) -> Facts:
    return pgdyno.Run(whole).facts


@pytest.fixture(scope="module")
def page(facts: Facts) -> str:
    return html.render(facts)


def first(path: Path) -> StageDiagnosis:
    return pgdyno.diagnose(path).stages[0]


def unknown(stage: StageDiagnosis) -> dict[str, str]:
    assert stage.window is not None
    return {one.name: one.fact for one in stage.window.answers if one.verdict == "unknown"}


def test_a_limit_is_named_from_the_file(whole: Path) -> None:
    found = pgdyno.diagnose(whole)
    assert [one.limits for one in found.stages] == [("flush",)] * 3
    assert all(one.agreeing == 3 for one in found.stages)
    text = found.text()
    assert text.startswith("initdb\n  The limit is the flush of WAL at commit: ")
    assert max(len(line) for line in text.splitlines()) <= 100
    assert str(found) == text
    stage = json.loads(found.json())["stages"][0]
    assert stage["limits"] == ["flush"]
    assert len(stage["windows"][0]["answers"]) == 16


def test_one_stage_is_asked_for_by_name(whole: Path) -> None:
    assert [one.stage for one in pgdyno.diagnose(whole, "tuned").stages] == ["tuned"]
    with pytest.raises(PgdynoError, match="no stage is called 'tuend', there are initdb, tuned"):
        pgdyno.diagnose(whole, "tuend")


def test_statements_are_told_with_what_they_do(whole: Path) -> None:
    window = first(whole).window
    assert window is not None
    of = {one.statement: one for one in window.statements}
    assert of["commit"].most == "flush"
    assert of["commit"].active == pytest.approx(6.0)


def test_without_telemetry_all_that_needs_it_is_unknown(tmp_path: Path) -> None:
    found = first(written(tmp_path / "run.sqlite", None, without_telemetry))
    assert found.outcome == "unknown"
    assert 'telemetry is off (`telemetry = "none"`)' in found.sentence
    assert found.window is not None
    assert found.window.deciding == 'A run with `protocol.telemetry = "default"` would tell.'
    assert len(unknown(found)) >= 15


def test_pgbench_leaves_the_client_unknown(tmp_path: Path) -> None:
    found = first(written(tmp_path / "run.sqlite", FLUSHING, without_statements))
    assert found.limits == ("flush",), "six of eight sessions, whatever the eighth does"
    assert set(unknown(found)) >= {"client", "round_trips"}
    assert "pgbench 18.6 does not tell" in unknown(found)["client"]


def test_a_server_that_is_not_ours_leaves_the_cpus_unknown(tmp_path: Path) -> None:
    found = first(written(tmp_path / "run.sqlite", FLUSHING, running_target))
    assert set(unknown(found)) >= {"cpu", "neighbours"}
    assert "the server is not ours" in unknown(found)["cpu"]
    assert found.limits == ("flush",)


def test_holes_in_the_samples_name_nothing(tmp_path: Path) -> None:
    def hole(tally: TallySeries) -> TallySeries:
        begin = tally.tick_seconds[0]
        ticks, counts = tally.tick_seconds < begin + 18, tally.seconds < begin + 18
        return replace(
            tally, tick_seconds=tally.tick_seconds[ticks], ticks=tally.ticks[ticks],
            seconds=tally.seconds[counts], key=tally.key[counts], counts=tally.counts[counts],
        )  # fmt: skip

    found = first(written(tmp_path / "run.sqlite", shorten=hole))
    assert found.outcome == "unknown"
    assert re.search(r"looked at in 1[78] of 29 seconds", found.sentence)


def test_a_kernel_that_counts_more_than_there_is_names_nothing(tmp_path: Path) -> None:
    def more(trial: TrialRecord) -> TrialRecord:
        assert trial.result is not None
        wrong = {"process.backend.wait_cpu_s": 20.0 * trial.result.window_s}
        return replace(trial, result=replace(trial.result, deltas=trial.result.deltas | wrong))

    found = first(written(tmp_path / "run.sqlite", change=more))
    assert "session time does not add up" in found.sentence


@pytest.mark.parametrize("name", ["format-1.sqlite", "format-2.sqlite"])
def test_files_of_earlier_versions_are_read_and_not_guessed_at(name: str) -> None:
    for stage in pgdyno.diagnose(DATA / name).stages:
        assert (stage.outcome, stage.limits) == ("unknown", ())
        assert "sessions were not sampled" in stage.sentence


def test_a_run_that_was_stopped_early_is_unknown(tmp_path: Path) -> None:
    path = write_miniature(tmp_path / "run.sqlite", planned=tuple(range(1, 10)))
    found = pgdyno.diagnose(path)
    assert {one.outcome for one in found.stages} == {"unknown"}
    assert "none of its windows" in found.stages[0].sentence


def test_a_run_without_a_plan_is_refused(tmp_path: Path) -> None:
    path, made = tmp_path / "probed.sqlite", (HostManifest(), Installation())
    info = RunInfo("r1", 1, "0.1.0", "pgdyno storage /a", None, *made, None, experiment="storage")
    RunFile.create(path, info, ()).close()
    with pytest.raises(PlanError, match="has no stages of a plan"):
        pgdyno.diagnose(path)


def test_the_report_has_a_sentence_its_proof_and_what_was_cleared(facts: Facts, page: str) -> None:
    section = page.split('<section id="limits"')[1].split("</section>", maxsplit=1)[0]
    words = unescape(re.sub(r"<[^>]+>", "", section))
    assert "What limits each stage" in words
    assert "The limit is the flush of WAL at commit" in words
    assert "not known" in words
    assert "cleared" in words
    for ident in re.findall(r'href="#(\w+)"', section):
        assert f'<section id="{ident}"' in page, ident
    assert 'href="#sessions"' in section
    text = markdown.render(facts)
    assert "## What limits each stage" in text
    assert "[What sessions did](#what-sessions-did)" in text
    assert "chart" not in text.lower(), "it has none"


def test_the_first_screen_says_nothing_of_it(page: str) -> None:
    head = page.split('<header id="answer">')[1].split("</header>", maxsplit=1)[0]
    assert "The limit is" not in head


def test_nothing_of_a_hostile_name_is_markup(facts: Facts) -> None:
    stage = replace(facts.diagnosis[0], stage="<script>x</script>")
    page = html.render(replace(facts, diagnosis=(stage,)))
    assert "<script>x" not in page


def asked(*words: str) -> Result:
    return CliRunner().invoke(app, ["diagnose", *words])


def test_the_command_prints_what_the_call_returns(whole: Path) -> None:
    found = pgdyno.diagnose(whole, "tuned")
    assert asked(str(whole), "--stage", "tuned").output == found.text()
    assert asked(str(whole), "--stage", "tuned", "--format", "json").output == found.json()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["nothing.sqlite"], StoreError),
        ([str(DATA / "format-2.sqlite"), "--stage", "x"], PgdynoError),
    ],
)
def test_what_cannot_be_diagnosed_is_an_error_of_ours(
    words: list[str], error: type[PgdynoError]
) -> None:
    """Whose text and exit code `cli.app` makes, as of all."""
    assert isinstance(asked(*words).exception, error)
