"""The metrics: OpenMetrics' grammar, values, and that the dashboard asks for what there is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from math import inf, isclose, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pgdyno.live import metrics, reference
from pgdyno.live.buckets import BOUNDS_NS, cumulative
from pgdyno.live.run_progress import Moment
from pgdyno.live.running import Running
from pgdyno.live.so_far import look, parts
from pgdyno.model.openmetrics import Family, Sample, exposition, histogram, sample_name
from pgdyno.model.progress import DriveProgress
from pgdyno.store import RunFile
from pgdyno.store.histogram import merged_quantiles, recorded
from tests.data.glances import glance
from tests.data.hdr import encode
from tests.data.hostile import ENDS
from tests.data.miniature import write_miniature

ROOT = Path(__file__).parents[3]
DASHBOARD = ROOT / "docs" / "grafana" / "pgdyno.json"
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
LINE = re.compile(rf"({NAME})(?:\{{((?:{LABEL},?)+)\}})? (\S+)")
SUFFIXES = {
    "counter": {"_total"}, "gauge": {""}, "histogram": {"_bucket", "_count", "_sum"},
    "info": {"_info"}, "stateset": {""},
}  # fmt: skip
Read = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(text: str) -> Read:
    """A strict reader: families once, TYPE first, no sample twice, the end at the end."""
    *lines, last = text.split("\n")
    assert last == ""
    assert lines.pop() == "# EOF"
    kinds: dict[str, str] = {}
    family = ""
    found: Read = {}
    for line in lines:
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert family not in kinds, f"{family} stands twice"
            assert kind in SUFFIXES
            kinds[family] = kind
        elif line.startswith("# UNIT "):
            _, _, name, unit = line.split(" ")
            assert (name, name.endswith(f"_{unit}")) == (family, True)
        elif line.startswith("# HELP "):
            assert line.split(" ")[2] == family
        else:
            match = LINE.fullmatch(line)
            assert match is not None, line
            name = match[1]
            assert name.removeprefix(family) in SUFFIXES[kinds[family]], line
            labels = tuple((one[0], unescaped(one[1])) for one in re.findall(LABEL, match[2] or ""))
            assert (name, labels) not in found, line
            found[name, labels] = float(match[5])
    return found


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda one: {"n": "\n"}.get(one[1], one[1]), text)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("metrics")
    return write_miniature(folder / "run.sqlite", planned=(7, 8, 9))


@pytest.fixture(scope="module")
def scraped(run: Path) -> Read:
    return read(exposition(samples(run)))


def samples(run: Path) -> Iterator[Sample]:
    found, counted = look(run), metrics.Counted()
    assert found.telemetry is not None
    device = replace(found.telemetry.devices[0], busy_share=0.25)
    running = Running()
    found = replace(found, telemetry=replace(found.telemetry, devices=(device,)))
    drive = DriveProgress("window", 3, 4.0, {"new_order": 10}, {}, 1, 2, 3, 4, connected=8)
    moment = Moment("drive", 6, 9, 200.5, 0.5, number=7, round=3, stage="tuned", drive=drive,
                    latency_s=0.02)  # fmt: skip
    counted.hear(moment)
    running.hear(moment)
    running.glance(glance(4))
    yield from metrics.of_moment(moment)
    yield from metrics.of_counted(counted)
    yield from metrics.of_running(running)
    yield from metrics.of_run(found, moment.stage)
    yield from metrics.Responses(merged_quantiles, recorded).samples(found.ever)
    yield Sample(metrics.CPU, (), 0.5)
    yield Sample(metrics.VIEWERS, (), 2)


def test_what_is_scraped_is_openmetrics(scraped: Read) -> None:
    served = {name for name, _ in scraped}
    promised = {name for one in metrics.FAMILIES for name in names_of(one)}

    assert served == promised, "every metric that is documented, and no other"


def test_values_are_those_of_the_run(run: Path, scraped: Read) -> None:
    facts = look(run).facts
    tuned = next(one for one in facts.stages if one.name == "tuned")
    assert tuned.to_first is not None
    assert tuned.throughput is not None
    ratio = (("stage", "tuned"), ("base", "initdb"), ("bound", "estimate"))
    per_second = (("stage", "tuned"), ("metric", "NOPM"))

    assert scraped["pgdyno_stage_ratio", ratio] == tuned.to_first.ratio
    assert isclose(
        scraped["pgdyno_stage_throughput_per_second", per_second] * 60, tuned.throughput.median
    )
    assert scraped["pgdyno_time_left_seconds", ()] == 200.5
    assert scraped["pgdyno_phase", (("pgdyno_phase", "drive"),)] == 1
    assert scraped["pgdyno_phase", (("pgdyno_phase", "restore"),)] == 0
    assert scraped["pgdyno_stage", (("pgdyno_stage", "tuned"),)] == 1
    assert scraped["pgdyno_trials", (("state", "planned"),)] == 3
    assert scraped["pgdyno_trials", (("state", "invalid"),)] == 1
    assert scraped["pgdyno_connections", ()] == 8
    assert scraped["pgdyno_trial_response_mean_seconds", ()] == 0.02


def test_the_slowest_requests_are_those_of_the_page(run: Path, scraped: Read) -> None:
    found = look(run)
    told = {
        (("stage", stage.name), ("base", tail.base), ("kind", tail.kind),
         ("percentile", tail.percentile), ("bound", bound)): value
        for stage in found.facts.stages for tail in stage.tails
        for bound, value in (("low", tail.low), ("estimate", tail.ratio), ("high", tail.high))
        if value is not None
    }  # fmt: skip
    served = {labels: v for (name, labels), v in scraped.items()
              if name == "pgdyno_stage_response_ratio"}  # fmt: skip
    assert served == told
    assert {labels[0][1] for labels in told} == {"tuned", "async-commit"}

    page: Any = parts(found)["found"]
    tuned = next(one for one in page["tails"] if one["stage"] == "tuned")
    percentile = tuned["of"].rpartition(" ")[2]
    labels = (("stage", "tuned"), ("base", "initdb"), ("kind", "new_order"),
              ("percentile", percentile))  # fmt: skip
    assert tuned["ratio"] == told[*labels, ("bound", "estimate")]
    assert (tuned["low"], tuned["high"]) == (
        told[*labels, ("bound", "low")], told[*labels, ("bound", "high")],
    )  # fmt: skip
    assert tuned["text"].startswith("×")


def test_devices_of_the_trial_that_runs_stand_beside_those_of_the_last(scraped: Read) -> None:
    flushes = (("device", "vda"), ("request", "flush"))
    assert scraped["pgdyno_trial_device_requests_per_second", flushes] == 400
    assert scraped["pgdyno_trial_device_request_seconds", flushes] == 0.0005
    assert scraped["pgdyno_device_requests_per_second", flushes] == pytest.approx(410, rel=0.1)
    assert scraped["pgdyno_trial_device_busy_ratio", flushes[:1]] == 0.62
    assert scraped["pgdyno_device_busy_ratio", flushes[:1]] == 0.25
    assert scraped["pgdyno_trial_active_sessions", (("class", "flush"),)] == 1.5
    assert scraped["pgdyno_trial_cpu_ratio", (("state", "iowait"),)] == 0.1


def test_active_sessions_are_those_of_the_report_here_and_on_the_page(
    run: Path, scraped: Read
) -> None:
    found = look(run)
    told = {
        (("stage", one.stage), ("class", share.name)): share.average
        for one in found.facts.sessions
        for share in one.by["class"]
    }
    served = {
        labels: v for (name, labels), v in scraped.items() if name == "pgdyno_stage_active_sessions"
    }
    assert served == told
    assert {labels[0][1] for labels in told} == {one.name for one in found.facts.stages}

    page: Any = parts(found)["found"]
    caption = "Active sessions on average, by what they do or wait for."
    (table,) = (one for one in page["tables"] if one["caption"] == caption)
    assert [row[0]["text"] for row in table["rows"]][-1] == "all active"
    assert all(" to " in cell["note"] for row in table["rows"] for cell in row[1:])


def test_a_run_that_goes_on_is_not_told_to_be_resumed(run: Path) -> None:
    found = look(run)
    ended = replace(
        found.facts.answer, plain=(*found.facts.answer.plain, "`pgdyno resume` goes on.")
    )
    facts = replace(found.facts, answer=ended)
    page: Any = parts(replace(found, facts=facts))["found"]
    assert page["answer"]
    assert not any("resume" in one for one in page["answer"])


def test_what_is_no_number_spoils_nothing_else() -> None:
    family = Family("pgdyno_x", "gauge", "", "Something.", ("stage",))
    text = exposition([Sample(family, ("a",), nan), Sample(family, ("b",), 2)])
    assert text.splitlines()[2:] == ['pgdyno_x{stage="a"} NaN', 'pgdyno_x{stage="b"} 2', "# EOF"]


def test_histograms_are_cumulative_and_count_every_request(run: Path, scraped: Read) -> None:
    tuned = next(one for one in look(run).facts.stages if one.name == "tuned")
    line = tuned.percentiles("new_order")
    assert line is not None
    with RunFile.read(run) as file:
        kinds = [
            kind for trial in file.finished() if trial.stage == "tuned" and trial.result
            for kind in trial.result.kinds if kind.kind == "new_order"
        ]  # fmt: skip
    count = sum(recorded(kind.response) for kind in kinds)
    labels = (("stage", "tuned"), ("kind", "new_order"))
    buckets = {
        float(one[2][1]): value
        for (name, one), value in scraped.items()
        if name == "pgdyno_response_seconds_bucket" and one[:2] == labels
    }

    assert list(buckets) == sorted(buckets)
    assert list(buckets.values()) == sorted(buckets.values())
    assert buckets[inf] == count == scraped["pgdyno_response_seconds_count", labels]
    assert scraped["pgdyno_response_seconds_sum", labels] > 0
    below = max(value for bound, value in buckets.items() if bound * 1e9 < line.p99_ns)
    above = min(value for bound, value in buckets.items() if bound * 1e9 > line.p99_ns)
    assert below <= 0.99 * count <= above


@pytest.mark.parametrize(
    "values",
    [
        [1_000_000],
        [100_000, 100_000, 250_000, 60_000_000_000],
        list(range(50_000, 3_000_000, 977)),
        [BOUNDS_NS[-1] * 4] * 7,
    ],
)
def test_buckets_count_exactly(values: list[int]) -> None:
    histogram_, count = encode(np.array(values, dtype=np.int64)), len(values)
    exact = merged_quantiles([histogram_], [(k + 0.5) / count for k in range(count)])

    assert cumulative(histogram_, count, merged_quantiles) == tuple(
        sum(value <= bound for value in exact) for bound in BOUNDS_NS
    )


def test_counters_never_fall_over_trials_that_begin_at_zero() -> None:
    counted = metrics.Counted()

    def hear(number: int, second: float, committed: int, stage: str = "tuned") -> int:
        drive = DriveProgress("window", 1, second, {"tpcb": committed}, {}, rolled_back=committed)
        counted.hear(Moment("drive", 0, 2, 1.0, number=number, stage=stage, drive=drive))
        assert counted.others[metrics.ROLLED_BACK][stage] == counted.committed[stage, "tpcb"]
        return counted.committed[stage, "tpcb"]

    assert [hear(1, 1, 10), hear(1, 2, 30), hear(1, 2, 30)] == [10, 30, 30]
    assert hear(2, 1, 5) == 35
    assert hear(2, 0.5, 2) == 37, "the same trial, measured again"
    assert hear(2, 0.7, 1) == 38, "once more, and heard of at a later second"
    assert hear(3, 1, 4, "initdb") == 4
    assert counted.committed["tuned", "tpcb"] == 38


def test_what_was_counted_of_trials_stays_when_their_round_is_measured_again(
    tmp_path: Path,
) -> None:
    path = write_miniature(tmp_path / "run.sqlite")

    def counters() -> Read:
        found = look(path)
        told = [*metrics.of_run(found, None)]
        told += metrics.Responses(merged_quantiles, recorded).samples(found.ever)
        return {
            key: value
            for key, value in read(exposition(told)).items()
            if key[0].endswith(("_total", "_count", "_sum", "_bucket"))
        }

    before = counters()
    assert {name for name, _ in before} >= {"pgdyno_events_total", "pgdyno_response_seconds_count"}
    with RunFile.append(path) as file:
        file.begin_again([one.number for one in file.trials() if one.round == 1])
    assert counters() == pytest.approx(before)


@pytest.mark.parametrize("word", ENDS.values(), ids=ENDS)
def test_a_hostile_name_is_a_label_and_nothing_else(word: str) -> None:
    family = Family("pgdyno_x", "gauge", "", word, ("stage",))

    assert read(exposition([Sample(family, (word,), 1.5)])) == {
        ("pgdyno_x", (("stage", word),)): 1.5
    }


def test_bounds_of_buckets_are_written_as_the_standard_writes_floats() -> None:
    family = Family("pgdyno_y_seconds", "histogram", "seconds", "Times.", ())
    bounds = {0.0001: 1, 0.025: 1, 1.0: 1, 10.0: 1, inf: 1}
    text = exposition(histogram(family, (), bounds, 0.0))

    assert re.findall(r'le="([^"]*)"} 1\n', text) == ["0.0001", "0.025", "1.0", "10.0", "+Inf"]


def test_a_histogram_ends_at_infinity() -> None:
    family = Family("pgdyno_y_seconds", "histogram", "seconds", "Times.", ())
    found = read(exposition(histogram(family, (), {0.1: 2, inf: 3}, 0.75)))

    assert found["pgdyno_y_seconds_bucket", (("le", "+Inf"),)] == 3
    assert found["pgdyno_y_seconds_sum", ()] == 0.75


def names_of(family: Family) -> set[str]:
    if family.kind == "histogram":
        return {sample_name(family, suffix) for suffix in ("bucket", "count", "sum")}
    return {sample_name(family)}


def test_names_follow_the_conventions() -> None:
    for one in metrics.FAMILIES:
        assert re.fullmatch(r"pgdyno_[a-z][a-z_]*[a-z]", one.name), one.name
        assert not one.name.endswith(("_total", "_info", "_bucket", "_count", "_sum")), one.name
        assert not one.unit or one.name.endswith(f"_{one.unit}"), one.name
        assert one.help.endswith("."), one.name
        assert "_ms" not in one.name
        assert "_ns" not in one.name


# -- the dashboard -------------------------------------------------------------------------------


def expressions(value: Any) -> Iterator[str]:
    """Every expression and query of a dashboard."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key in ("expr", "query", "definition") and isinstance(one, str):
                yield one
            else:
                yield from expressions(one)
    elif isinstance(value, list):
        for one in value:
            yield from expressions(one)


GROUPED = re.compile(r"\b(?:by|without) ?\(([^)]*)\)")


def test_the_dashboard_asks_for_metrics_and_labels_that_are_served() -> None:
    labels = {name: {*one.labels} for one in metrics.FAMILIES for name in names_of(one)}
    for name, known in labels.items():
        if name.endswith("_bucket"):
            known.add("le")
    queries = [one for one in expressions(json.loads(DASHBOARD.read_text())) if "pgdyno_" in one]
    used: set[str] = set()
    for text in queries:
        named = set(re.findall(r"pgdyno_[a-z_]+", text))
        assert named, text
        assert named <= labels.keys(), text
        used |= named
        for name, inside in re.findall(r"(pgdyno_[a-z_]+)\{([^}]*)\}", text):
            assert set(re.findall(r"(\w+) ?(?:=~|!~|!=|=)", inside)) <= labels[name], text
        for inside in GROUPED.findall(text):
            assert set(re.findall(r"\w+", inside)) <= set.union(*(labels[one] for one in named))
        for name, label in re.findall(r"label_values\((\w+), (\w+)\)", text):
            assert label in labels[name], text

    assert len(queries) > 10
    assert {"pgdyno_response_seconds_bucket", "pgdyno_transactions_committed_total",
            "pgdyno_stage_ratio", "pgdyno_time_left_seconds"} <= used  # fmt: skip


def test_the_page_of_metrics_is_current() -> None:
    page = ROOT / "docs" / "reference" / "metrics.md"

    assert page.read_text() == reference.page(), "run `make reference`"
