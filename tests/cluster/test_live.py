"""A run that others watch: the process beside it, its viewers, and a run that minds neither."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pytest

from pgdyno.live.address import Address
from pgdyno.live.audience import Audience
from pgdyno.model.errors import Interrupted, PgdynoError
from pgdyno.model.progress import Event, Noted, RunBegun
from pgdyno.store import RunFile
from tests import children
from tests.cluster.test_run import PLAN, pgdyno, servers
from tests.data.miniature import WARMUP_S, WINDOW_S, write_miniature
from tests.data.played import Played
from tests.viewer import Viewer, answer, opened
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.cluster
ANY = Address("127.0.0.1", 0)
ROOT = Path(__file__).parents[2]


class Told:
    """The listener behind an audience."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    @property
    def notes(self) -> list[str]:
        return [one.text for one in self.events if isinstance(one, Noted)]


@pytest.fixture
def played(tmp_path: Path) -> Played:
    return Played(write_miniature(tmp_path / "whole.sqlite"), tmp_path / "run.sqlite")


def worker() -> psutil.Process:
    """The process that this one is watched through."""
    (found,) = (one for one in psutil.Process().children() if "pgdyno.live.worker" in one.cmdline())
    return found


def page_of(audience: Audience) -> str:
    assert audience.page_url is not None
    return audience.page_url


def metrics_of(audience: Audience) -> str:
    assert audience.metrics_url is not None
    with urlopen(audience.metrics_url, timeout=DEADLINE_S) as found:
        text: str = found.read().decode()
    return text


def test_two_viewers_see_a_run_from_its_begin_to_its_end(played: Played) -> None:
    told = Told()
    with ExitStack() as stack:
        audience = stack.enter_context(Audience(told, ANY, ANY))
        first = stack.enter_context(Viewer(page_of(audience)))
        audience(played.begin())
        assert first.until("head")["question"] == played.plan.question
        assert first.until("found") is None, "no trial has finished"
        for number in (1, 2, 3):
            for event in played.trial(number):
                audience(event)
        until(lambda: first.next() and first.parts["found"], "a stage so far")
        second = stack.enter_context(Viewer(page_of(audience)))
        second.until("found")
        assert second.parts["head"] == first.parts["head"], "who comes late lacks nothing"
        assert second.until("progress")["todo"] == 9
        text = metrics_of(audience)
        assert "pgdyno_live_viewers 2\n" in text
        kept = played.driving(2, WARMUP_S + WINDOW_S).committed["new_order"]
        counted = f'pgdyno_transactions_committed_total{{stage="tuned",kind="new_order"}} {kept}'
        assert f"{counted}\n" in text, "the last of a window is counted, however short it lasted"
        assert text.endswith("# EOF\n")
        process = worker()
        audience.close()
        for viewer in (first, second):
            viewer.to_the_end()
            assert viewer.parts["end"]["outcome"] == "ended"
            assert viewer.parts["end"]["report"] == str(played.path.with_suffix(".html"))
    assert not process.is_running()
    assert audience.cost is not None
    assert audience.cost.viewers == 2
    assert audience.cost.cpu_s > 0
    assert any("of CPU" in one for one in told.notes)
    assert told.events[0] == played.begin(), "who listens behind it is told everything"


@contextmanager
def going_on(played: Played, told: Told) -> Iterator[Audience]:
    with Audience(told, ANY, None) as audience:
        audience(played.begin())
        yield audience


@pytest.mark.wide
def test_the_stages_are_those_of_the_report(played: Played) -> None:
    from pgdyno.api import Run  # noqa: PLC0415  it needs what plots

    with Audience(Told(), ANY, None) as audience, Viewer(page_of(audience)) as viewer:
        audience(played.begin())
        for number in range(1, 10):
            for event in played.trial(number):
                audience(event)
        until(
            lambda: viewer.next() and (viewer.parts.get("found") or {}).get("finished") == 8,
            "all trials",
        )
        found = viewer.parts["found"]
    facts = Run(played.path).facts

    (sessions,) = (one for one in found["tables"] if one["caption"].startswith("Active sessions"))
    assert [one["head"] for one in sessions["columns"]][1:] == [one.name for one in facts.stages]

    assert [one["name"] for one in found["cards"]] == [one.name for one in facts.stages]
    for shown, stage in zip(found["ratios"], facts.stages, strict=True):
        one = stage.to_first
        assert (shown["ratio"], shown["low"], shown["high"]) == (
            (one.ratio, one.low, one.high) if one else (None, None, None)
        )


@pytest.mark.wide
def test_a_run_that_goes_on_shows_what_was_found_before(played: Played) -> None:
    for number in (1, 2, 3, 4):
        list(played.trial(number))

    with Audience(Told(), ANY, None) as audience, Viewer(page_of(audience)) as viewer:
        begin = played.begin(done=4)
        audience(RunBegun(begin.path, begin.plan, begin.todo, ("Round 2 is measured again.",)))
        until(lambda: viewer.next() and viewer.parts.get("found"), "what was found")
        assert viewer.parts["found"]["finished"] == 4
        assert viewer.until("notes")[0]["text"] == "Round 2 is measured again."
        until(lambda: viewer.parts["progress"]["todo"] == 5 or viewer.next(), "five are left")


def test_its_death_is_a_note_and_the_run_goes_on(played: Played) -> None:
    told = Told()
    with Audience(told, ANY, None) as audience:
        audience(played.begin())
        worker().send_signal(signal.SIGKILL)
        for number in (1, 2):
            for event in played.trial(number):
                audience(event)

    assert [one for one in told.notes if "ended by itself, with code -9" in one] == told.notes
    assert audience.cost is None
    assert psutil.Process().children() == []


def test_one_that_hangs_delays_nobody(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.live.audience._ENDS_S", 0.2)
    told = Told()
    with Audience(told, ANY, None) as audience:
        worker().send_signal(signal.SIGSTOP)
        audience(played.begin())
        for _ in range(2000):  # far more than a pipe holds
            audience(Noted("x" * 1000))

    assert len(told.events) > 2000
    assert psutil.Process().children() == []


@pytest.mark.parametrize("which", ["page", "metrics"])
def test_a_port_in_use_is_refused_before_anything_begins(which: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = Address("127.0.0.1", taken.getsockname()[1])
        audience = Audience(Told(), *((at, ANY) if which == "page" else (ANY, at)))
        with pytest.raises(PgdynoError, match=f"{at} cannot be listened on: address already") as no:
            audience.__enter__()

    assert no.value.hint is not None
    assert psutil.Process().children() == []


def test_a_name_that_is_nobodys_is_refused() -> None:
    with pytest.raises(PgdynoError, match="cannot be listened on"):
        Audience(Told(), Address("no.such.host.invalid", 0), None).__enter__()


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        pytest.param(Interrupted("stopped", "Continue."), "stopped", marks=pytest.mark.wide),
        pytest.param(KeyboardInterrupt(), "stopped", marks=pytest.mark.wide),
        pytest.param(PgdynoError("the disk is full"), "failed", marks=pytest.mark.wide),
        (ValueError("secret"), "failed"),
    ],
)
def test_viewers_are_told_how_a_run_ended(
    played: Played, error: BaseException, outcome: str
) -> None:
    with Audience(Told(), ANY, None) as audience, Viewer(page_of(audience)) as viewer:
        audience(played.begin())
        audience.close(error)
        viewer.to_the_end()

    assert viewer.parts["end"]["outcome"] == outcome
    assert viewer.parts["end"]["report"] is None
    assert "secret" not in viewer.parts["end"]["text"]


def test_a_worker_whose_run_was_killed_tells_its_viewers_and_ends(played: Played) -> None:
    program = (
        "import os, signal; from tests.cluster.test_live import ANY, Audience, Told;"
        " a = Audience(Told(), ANY, None).__enter__(); print(a.page_url, flush=True);"
        " input(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    process = children.started(
        [sys.executable, "-c", program], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    (found,) = psutil.Process(process.pid).children()
    with Viewer(url) as viewer:
        viewer.until("progress")
        process.stdin.write("\n")
        process.stdin.flush()
        viewer.to_the_end()

    assert viewer.parts["end"]["outcome"] == "lost"
    until(lambda: not found.is_running() or found.status() == "zombie", "the worker's end")


@pytest.mark.wide
def test_a_lost_connection_finds_the_same_page_again(played: Played) -> None:
    with going_on(played, Told()) as audience:
        with Viewer(page_of(audience)) as viewer:
            head = viewer.until("head")
            path, cookie = viewer.path, viewer.cookie
        found = answer(page_of(audience), path, {"Cookie": cookie})
        assert found.status == 200
        with Viewer(page_of(audience)) as again:
            assert again.until("head") == head
            assert (again.path, again.cookie) == (path, cookie)


@pytest.mark.wide
def test_it_yields_to_whatever_else_runs() -> None:
    with Audience(Told(), ANY, None):
        assert worker().nice() == 19


def test_no_request_is_logged_and_the_token_stands_on_no_command_line(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with Audience(Told(), ANY, None) as audience:
        opened(page_of(audience))
        token = page_of(audience).partition("token=")[2]
        assert not any(token in word for word in worker().cmdline())
        assert token not in str(worker().environ())
    assert capfd.readouterr() == ("", "")


# -- the command line, on a real server ---------------------------------------------------------


def started(*args: str | Path, errors: Path) -> subprocess.Popen[str]:
    with errors.open("w") as told:
        return children.started(
            [sys.executable, "-m", "pgdyno", *map(str, args)],
            stdout=subprocess.DEVNULL, stderr=told, text=True,
        )  # fmt: skip


def told_urls(process: subprocess.Popen[str], errors: Path) -> dict[str, str]:
    until(
        lambda: process.poll() is not None or "metrics   http" in errors.read_text(),
        "the addresses",
    )
    lines = (line.rpartition(" ") for line in errors.read_text().splitlines() if "http" in line)
    return {what.strip(): url for what, _, url in lines}


@pytest.mark.long
@pytest.mark.same_machine
def test_a_real_run_is_watched_stopped_and_resumed(folder: Path, home_env: Path) -> None:
    plan, out, errors = folder / "small.toml", folder / "run.sqlite", folder / "errors"
    plan.write_text(PLAN)
    process = started(
        "run", plan, "--set", "protocol.rounds=1", "--live", "--metrics", "127.0.0.1:0",
        "--out", out, errors=errors,
    )  # fmt: skip
    urls = told_urls(process, errors)
    with Viewer(urls["live page"]) as viewer:
        until(lambda: viewer.next() and (viewer.parts.get("found") or {}), "a finished trial")
        with urlopen(urls["metrics"], timeout=DEADLINE_S) as scraped:
            assert b"pgdyno_response_seconds_bucket" in scraped.read()
        process.send_signal(signal.SIGINT)
        viewer.to_the_end()
    assert process.wait(DEADLINE_S) == 130
    assert viewer.parts["end"]["outcome"] == "stopped"
    assert servers(home_env) == []

    shown = pgdyno("resume", out, "--live", "0")

    assert "live page http://127.0.0.1:" in shown.stderr
    assert "of CPU" in shown.stderr
    with RunFile.read(out) as run:
        finished = run.finished()
        assert len(finished) == 2
        for trial in finished:
            assert trial.result is not None
            assert trial.result.deltas["live.cpu_s"] >= 0, "what showing it cost is kept"
        text = json.dumps([run.info().command, *run.logs().values()])
        assert urls["live page"].partition("token=")[2] not in text


LOOKED_AT = """
[[stage]]
name = "checkpoints"
why = "So many that some begin in any window."
settings = { max_wal_size = "32MB", min_wal_size = "32MB", checkpoint_timeout = "30s" }
"""


@pytest.mark.same_machine
def test_a_trial_is_seen_while_it_runs(folder: Path, home_env: Path) -> None:
    plan, out, errors = folder / "small.toml", folder / "run.sqlite", folder / "errors"
    plan.write_text(PLAN.partition("[[stage]]")[0] + LOOKED_AT)
    process = started(
        "run", plan, "--set", "protocol.rounds=1", "--set", "protocol.window_s=600", "--live",
        "--metrics", "127.0.0.1:0", "--out", out, errors=errors,
    )  # fmt: skip
    urls = told_urls(process, errors)
    with Viewer(urls["live page"]) as viewer:

        def running() -> dict[str, Any]:
            viewer.next()
            assert process.poll() is None, errors.read_text()
            return viewer.parts.get("running") or {}

        until(lambda: running().get("cpus") and running().get("events"), "CPUs, and what it logs")
        until(lambda: (running().get("sessions") or {}).get("groups"), "active sessions")
        events = viewer.parts["running"]["events"]["rows"]
        assert "checkpoint" in {row[0]["text"] for row in events}
        assert viewer.parts.get("last") is None, "no trial has ended"

        def scraped() -> str:
            with urlopen(urls["metrics"], timeout=DEADLINE_S) as found:
                text: str = found.read().decode()
            return text

        until(lambda: "pgdyno_trial_active_sessions{" in scraped(), "the sessions of a second")
        text = scraped()
        assert 'pgdyno_trial_cpu_ratio{state="busy"}' in text
        assert 'pgdyno_logged_events_total{stage="checkpoints",kind="checkpoint"}' in text
        process.send_signal(signal.SIGINT)
        viewer.to_the_end()
    assert process.wait(DEADLINE_S) == 130
    assert servers(home_env) == []


@pytest.mark.wide
def test_a_port_in_use_stops_the_command_before_it_touches_anything(
    folder: Path, home_env: Path
) -> None:
    plan, out = folder / "small.toml", folder / "run.sqlite"
    plan.write_text(PLAN)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = pgdyno("run", plan, "--live", port, "--out", out, code=7)

    assert f"127.0.0.1:{port} cannot be listened on" in refused.stderr
    assert not out.exists()


@pytest.mark.wide
def test_nobody_is_left_when_the_command_is_killed(folder: Path, home_env: Path) -> None:
    plan, out, errors = folder / "small.toml", folder / "run.sqlite", folder / "errors"
    plan.write_text(PLAN)
    process = started("run", plan, "--live", "--metrics", "127.0.0.1:0", "--out", out,
                      errors=errors)  # fmt: skip
    told_urls(process, errors)
    (found,) = (one for one in psutil.Process(process.pid).children()
                if "pgdyno.live.worker" in one.cmdline())  # fmt: skip
    os.kill(process.pid, signal.SIGKILL)
    process.wait(DEADLINE_S)

    until(lambda: not found.is_running() or found.status() == "zombie", "the worker's end")
    until(lambda: servers(home_env) == [], "the servers' end")
