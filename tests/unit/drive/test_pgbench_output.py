"""What pgbench 18 and 15 really printed, read; texts were recorded on servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.drive.pgbench_output import Progress, error_of, progress_of, summary
from pgdyno.model.errors import DriveError
from pgdyno.model.run import PgbenchSummary

DATA = Path(__file__).parents[2] / "data" / "pgbench"
VERSIONS = pytest.mark.parametrize("version", [18, 15])


def lines(name: str) -> list[str]:
    return (DATA / f"{name}.txt").read_text().split("\n")


def told(name: str, *kinds: str) -> PgbenchSummary:
    return summary(lines(name), "pgbench", kinds or ("tpcb",))


def test_the_summary_is_read() -> None:
    new, old = told("18-tpcb"), told("15-tpcb")

    assert (new.transactions, new.failed, new.retries) == (5295, 0, 0)
    assert (new.tps, new.latency_mean_s, new.latency_sd_s) == (1773.060926, 0.002249, 0.003564)
    assert new.connect_s == pytest.approx(0.020093)
    assert (old.transactions, old.tps) == (2604, 867.393981)


@VERSIONS
def test_commands_have_their_means(version: int) -> None:
    found = told(f"{version}-tpcb").statements

    assert len(found) == 11
    assert found[0].text == r"\set aid random(1, 100000 * :scale)"
    assert (found[4].text, found[-1].text) == ("BEGIN;", "END;")
    assert found[-1].mean_s == pytest.approx({18: 0.000498, 15: 0.001104}[version])
    mean_s = told(f"{version}-tpcb").latency_mean_s
    assert sum(one.mean_s for one in found) == pytest.approx(mean_s, rel=0.01)


def test_commands_belong_to_their_script_with_failures_and_retries() -> None:
    for version, failures, retries in (
        (18, (0, 2516, 492, 0), 4274),
        (15, (0, 2695, 417, 0), 4380),
    ):
        summary = told(f"{version}-ser", "ser.sql", "sel.sql")

        kinds = [(one.kind, one.text) for one in summary.statements]
        assert kinds == [
            ("ser.sql", "BEGIN ISOLATION LEVEL SERIALIZABLE;"),
            ("ser.sql", "UPDATE pgbench_branches"),
            ("ser.sql", "END;"),
            ("sel.sql", "SELECT 1;"),
        ]
        assert tuple(one.failures for one in summary.statements) == failures
        assert sum(failures) == summary.failed
        assert sum(one.retries for one in summary.statements) in (retries, summary.retries + 1)


def test_progress_is_read() -> None:
    assert progress_of(lines("18-tpcb")[2]) == Progress(1.0, 1148.9, 0.003391, 0, 0)
    retried = next(filter(None, map(progress_of, lines("15-ser"))))
    assert (retried.failed, retried.retries) == (1063, 1471)
    lagging = next(filter(None, map(progress_of, lines("18-rate"))))
    assert (lagging.tps, lagging.failed) == (306.0, 0)
    old = progress_of("progress: 1795348748.123 s, 0.0 tps, lat -nan ms stddev -nan, lag -nan ms")
    assert old == Progress(1795348748.123, 0.0, None, 0, 0)
    assert progress_of("duration: 3 s") is None


@VERSIONS
@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("bad", 'ERROR:  relation "nowhere" does not exist'),
        ("badscript", 'syn.sql:1: syntax error in command "set"'),
        ("died", "; perhaps the backend died while processing"),
        ("noserver", 'connection to server on socket "/run/there/.s.PGSQL.5432" failed'),
    ],
)
def test_the_first_error_says_what_went_wrong(version: int, name: str, fact: str) -> None:
    first = next(filter(None, map(error_of, lines(f"{version}-{name}"))))

    assert fact in first


def test_an_error_of_older_versions_is_one() -> None:
    assert error_of("client 3 script 0 aborted in command 1 query 0: ERROR:  no") is not None
    assert error_of("client 3 sending SELECT 1;") is None


@VERSIONS
def test_a_good_run_has_no_error(version: int) -> None:
    for name in ("tpcb", "select", "rate", "ser"):
        assert not any(map(error_of, lines(f"{version}-{name}")))


def test_half_a_summary_is_none() -> None:
    with pytest.raises(DriveError, match="no summary that is understood"):
        summary(lines("18-bad"), "pgbench", ["bad.sql"])
