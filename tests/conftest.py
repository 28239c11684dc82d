"""For all tests: their order, their places on parallel workers, and that they leave nothing behind.

Tests know nothing of each other: `--shuffle N` runs them in an order that N decides, and they hold
in any. Workers of pytest-xdist share the machine but no folder; tests that share a server of their
module stay together, as do those that change the machine itself (`xdist_group("machine")`).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from pgdyno.host.disk_lock import VARIABLE
from tests import children
from tests.leftovers import PREFIX, SESSION, leftovers, machine
from tests.tally import take_tallies
from tests.turns import turn

# Examples of Hypothesis are not timed, since a busy machine is no defect.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# What takes longest comes first, so that the short ones fill the workers' last minute; guides come
# together, as tests that change the machine wait for each of them.
_FIRST = ("cluster", "attack", "method", "browser")
_GUIDE = 30  # tests take as long as a guide or a notebook that is carried out
MACHINE = "machine"
"""Group of the tests that change it, and of those that need it long enough for these to wait."""
_BEFORE = pytest.StashKey[Any]()
_LEFT = pytest.StashKey[list[str]]()
_TRIED = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, metavar="N", help="tests in an order that N decides")


def pytest_configure(config: pytest.Config) -> None:
    """One folder for the session, which workers inherit; no terminal before ours is loaded."""
    _forget_terminal()
    if SESSION in os.environ and hasattr(config, "workerinput"):
        return
    above = os.environ.get(SESSION, "/tmp")  # a session that a test begins lies in that of the test
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}tests-{os.getpid()}-", dir=above))
    folder.chmod(0o755)  # servers run as another user
    os.environ[SESSION] = str(folder)
    config.stash[_BEFORE] = machine(folder)
    config.pluginmanager.register(_Failing(config))


@pytest.hookimpl(wrapper=True)  # only so it comes before xdist, which reads the groups
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None]:
    for item in items:
        if item.get_closest_marker("xdist_group") is None and (group := _shared(item)):
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: _FIRST.index(kind) if (kind := _kind(item)) in _FIRST else 9)
    if (seed := config.getoption("shuffle")) is not None:
        order = np.random.default_rng(seed).permutation(len(items))
        items[:] = [items[at] for at in order]
    yield
    if seed is None:  # of those that were chosen
        _sort_longest_first(items)
    if getattr(config.option, "loadgroup", False):  # of a worker
        _require_groups(items)


def _sort_longest_first(items: list[pytest.Item]) -> None:
    """By what a worker gets at a time."""
    lengths = Counter[str]()
    for item in items:
        is_guide = item.get_closest_marker("document") is not None and _kind(item) == "cluster"
        lengths[_scope(item)] += _GUIDE if is_guide else 1
    items.sort(key=lambda item: -lengths[_scope(item)])


def _require_groups(items: list[pytest.Item]) -> None:
    """Groups are told by the names that xdist gives: where those are lost, all are scattered."""
    for item in items:
        marker = item.get_closest_marker("xdist_group")
        if marker is not None and not item.nodeid.endswith(f"@{marker.args[0]}"):
            raise pytest.UsageError(
                f"{item.nodeid} is not kept together with group {marker.args[0]}: this pytest and"
                " this pytest-xdist do not fit each other"
            )


LAST_LINES = 20  # of what a test failed by


class _Failing:
    """Tells what fails when it fails: who stops a session of an hour has not lost what it found."""

    def __init__(self, config: pytest.Config) -> None:
        self._plugins = config.pluginmanager

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._plugins.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.write_line(f" {report.nodeid} failed in its {report.when}", red=True)
            for line in report.longreprtext.splitlines()[-LAST_LINES:]:
                terminal.write_line(f"   {line}")


@pytest.fixture(autouse=True, scope="session")
def _disks_of_our_own() -> Iterator[None]:
    """Tests side by side, and other sessions, measure on one disk: locks are a worker's own."""
    folder = Path(tempfile.mkdtemp(prefix="disks-", dir=os.environ[SESSION]))
    folder.chmod(0o755)
    for disk in Path("/sys/class/block").glob("*"):
        (folder / disk.name).mkdir()
    os.environ[VARIABLE] = str(folder)
    yield
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def _no_child_stays() -> Iterator[None]:
    _forget_terminal()
    yield
    children.end_all()


_OF_A_TERMINAL = (
    "COLUMNS",
    "LINES",
    "FORCE_COLOR",
    "NO_COLOR",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
)


def _forget_terminal() -> None:
    """Of whoever began the tests: what they read of a command would have its width and colours."""
    for name in _OF_A_TERMINAL:  # readline sets two behind Python's back, for children alone
        os.environ.pop(name, None)
        os.unsetenv(name)


@pytest.fixture(autouse=True)
def _alone_on_the_machine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Who changes the machine waits for those that need it as it is, here and in other sessions."""
    marker = request.node.get_closest_marker("xdist_group")
    needs = request.node.get_closest_marker("same_machine") is not None
    changes = not needs and marker is not None and marker.args[0] == MACHINE
    if not changes and not needs:
        yield
        return
    with turn(alone=changes):
        yield


def _scope(item: pytest.Item) -> str:
    """What a worker gets at a time: a group, or a test alone."""
    marker = item.get_closest_marker("xdist_group")
    return item.nodeid if marker is None else str(marker.args[0])


def _kind(item: pytest.Item) -> str:
    return item.path.relative_to(Path(__file__).parent).parts[0]


def _shared(item: pytest.Item) -> str | None:
    """What the tests have in common that use the same fixtures of their module; None without."""
    definitions = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009
    wide = sorted(
        name for name, found in definitions.items() if found[-1].scope in ("module", "package")
    )
    if not wide:
        return None
    values = getattr(getattr(item, "callspec", None), "indices", {})
    chosen = [f"{name}{values[name]}" for name in wide if name in values]
    return "-".join([item.path.stem, *chosen])


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """The session fails when one of its tests left something."""
    before = session.config.stash.get(_BEFORE, None)
    if before is None or session.config.option.collectonly:
        return
    session.config.stash[_TRIED] = take_tallies(before.folder)
    factory = getattr(session.config, "_tmp_path_factory")  # noqa: B009
    session.config.stash[_LEFT] = left = leftovers(before, factory.getbasetemp())
    if left and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in terminalreporter.config.stash.get(_TRIED, []):
        terminalreporter.write_line(line)
    for line in terminalreporter.config.stash.get(_LEFT, []):
        terminalreporter.write_line(f"LEFT BEHIND {line}", red=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    if config.stash.get(_BEFORE, None) is not None:
        shutil.rmtree(config.stash[_BEFORE].folder, ignore_errors=True)
