"""Programs that are started: none outlives a wish to end, none is told what libpq is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pgdyno import shell
from pgdyno.model.errors import TargetError
from tests import children
from tests.waiting import DEADLINE_S, until

SLEEPS = ["sleep", "600"]


@pytest.fixture
def born(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[str]]]:
    """The programs that were started, each with a Ctrl-C as soon as it runs."""
    found: list[subprocess.Popen[str]] = []

    class Interrupted(subprocess.Popen[str]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            found.append(self)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield found
    signal.signal(signal.SIGINT, before)
    for one in found:
        one.kill()
        one.wait(children.ENDS_S)


@pytest.mark.parametrize("how", [shell.start, shell.run], ids=["beside us", "to its end"])
def test_a_program_does_not_outlive_the_wish_to_end_that_met_its_start(
    how: Callable[[list[str]], object], born: list[subprocess.Popen[str]]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        how(SLEEPS)

    assert len(born) == 1
    until(lambda: born[0].poll() is not None, "its end")


def test_a_wish_that_nobody_listens_to_stays_unheard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
    wait = subprocess.Popen.wait

    def hung_up(self: subprocess.Popen[str], timeout: float | None = None) -> int:
        signal.raise_signal(signal.SIGHUP)
        return wait(self, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", hung_up)
    try:
        done, asked = shell.run_whole(["true"])
    finally:
        signal.signal(signal.SIGHUP, before)

    assert done.code == 0
    assert not asked


def test_variables_of_libpq_are_forgotten_and_those_of_pgdyno_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A journal named by PGDYNO_HOST_STATE was written elsewhere once a server had been started."""
    ours = {"PGDYNO_HOME": "/a", "PGDYNO_HOST_STATE": "/b", "PGDYNO_GUARD_STATE": "/c",
            "PGDYNO_DISK_LOCKS": "/d"}  # fmt: skip
    theirs = {"PGOPTIONS": "-c work_mem=8MB", "PGSERVICE": "x"}
    for name, value in (ours | theirs).items():
        monkeypatch.setenv(name, value)
    ask = "import os; print(sorted(one for one in os.environ if one.startswith('PG')))"

    child = shell.run([sys.executable, "-c", ask])

    assert child.stdout.strip() == str(sorted(ours))
    shell.forget_postgres_variables()
    assert {name: value for name, value in os.environ.items() if name in ours | theirs} == ours


def test_what_a_program_says_is_read_whatever_its_files_are_called() -> None:
    """Names of files are bytes: an error that holds one would end in an error of its own."""
    code = r"import os; os.write(2, b'caf\xe9: no such file\n'); os._exit(3)"
    with pytest.raises(TargetError, match=r"ended with code 3: caf\\xe9: no such file"):
        shell.run([sys.executable, "-c", code])
    beside = shell.start([sys.executable, "-c", code.replace("(2,", "(1,")], pipes=True)
    try:
        assert beside.stdout.read() == "caf\\xe9: no such file\n"
    finally:
        beside.wait(DEADLINE_S)
        beside.close_pipes()
