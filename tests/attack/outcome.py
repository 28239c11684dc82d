"""How an attacked command ended: in success or a clean refusal, in bounded time and memory."""

from __future__ import annotations

import io
import re
import resource
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import pytest

from pgdyno.cli import app, console
from tests.tally import count
from tests.waiting import DEADLINE_S

CASE_CPU_S = 60.0
"""Far more than any case takes of a processor, however many others want it: longer is a hang."""
CASE_BYTES = 2 << 30
"""Address space beyond what the process has already."""

_CODES = {1, 2, 3, 4, 5, 6, 7}
_PYTHON = re.compile(
    r"Traceback|datetime\.|<class|<object|\bNone\b|PosixPath|Decimal\(|Fraction\(|\('|\{'\w+':|"
    r"\b(?:True|False)\b|[a-z]Error\b|dict_keys"
)
_AROUND = 4  # letters beside such a word, by which it is found in the input


class Hang(BaseException):
    """A case took longer than any case may."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Exit code, and what was printed."""

    code: int
    out: str
    err: str


def _hang(_number: int, _frame: FrameType | None) -> None:
    raise Hang


@contextmanager
def bounded() -> Iterator[None]:
    """A deadline, of work and of waiting, and a limit of memory for what runs in it."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + CASE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    clocks = (
        (signal.SIGALRM, signal.ITIMER_REAL, DEADLINE_S),
        (signal.SIGPROF, signal.ITIMER_PROF, CASE_CPU_S),
    )
    old = [signal.signal(number, _hang) for number, _, _ in clocks]
    for _, timer, seconds in clocks:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(clocks, old, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> Ended:
    """Run the command line in this process, as `pgdyno WORDS` would."""
    out, err = io.StringIO(), io.StringIO()
    with monkeypatch.context() as patch, bounded():
        patch.setattr(sys, "argv", ["pgdyno", *words])
        patch.setattr(sys, "stdout", out)
        patch.delenv("PGDYNO_DEBUG", raising=False)
        patch.setattr(sys, "stderr", err)
        for one, file in ((console.stdout, out), (console.stderr, err)):
            patch.setattr(one, "file", file)
            patch.setattr(one, "width", 10_000)
        handlers = [(n, signal.getsignal(n)) for n in (signal.SIGTERM, signal.SIGINT)]
        try:
            code = app._run()
        finally:
            for number, handler in handlers:
                signal.signal(number, handler)
    return Ended(code, out.getvalue(), err.getvalue())


def require_clean(ended: Ended, *named: str, given: bytes = b"") -> str:
    """Whether it was accepted or refused; a refusal names what it must, and no Python.

    Args:
        ended: The command.
        named: What a refusal has to name.
        given: The input, of which it may quote what looks like Python.

    Raises:
        AssertionError: It is neither.
    """
    if ended.code == 0:
        return "accepted"
    assert ended.code in _CODES, f"exit code {ended.code}\n{ended.err}"
    assert "error: " in ended.err, f"no error is told: {ended.err!r}"
    for name in named:
        assert name in ended.err, f"{name} is not named: {ended.err}"
    own = given.decode(errors="replace")
    for python in _PYTHON.finditer(ended.err):
        around = ended.err[python.start() - _AROUND : python.end() + _AROUND]
        assert around in own, f"Python's words {python[0]!r}: {ended.err}"
    return "refused"


def listing(folder: Path) -> dict[str, tuple[int, int, int]]:
    """What lies in a folder: kind, size and time of each path."""
    found = {}
    for path in folder.rglob("*"):
        facts = path.lstat()
        found[str(path.relative_to(folder))] = (facts.st_mode, facts.st_size, facts.st_mtime_ns)
    return found


class Tally:
    """Counts how the cases of a campaign ended, and tells which one failed."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.counts: Counter[str] = Counter()

    @contextmanager
    def case(self, number: int, content: bytes, *about: str) -> Iterator[None]:
        """One case; its failure is told with what repeats it."""
        try:
            yield
        except (Exception, Hang) as error:
            shown = content[:3000].decode("utf-8", errors="backslashreplace")
            raise AssertionError(
                f"{self.what} number {number} {' '.join(about)}:"
                f" {type(error).__name__}: {error}\n--- input\n{shown}"
            ) from error

    def keep(self) -> None:
        """Hand the counts to the session."""
        for how, times in self.counts.items():
            count(self.what, how, times)
