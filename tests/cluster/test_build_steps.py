"""How a build goes wrong: with a source that stands for PostgreSQL's and is compiled in no time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, Self

import pytest

from pgdyno.builder import compile as steps
from pgdyno.builder.compile import How, build
from pgdyno.builder.source import look
from pgdyno.folders import MARK
from pgdyno.model.build import Build, Recipe
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.plan import Target
from pgdyno.shell import OsUser, postgres_user
from pgdyno.target.binaries import find_binaries
from pgdyno.target.home import locked_home
from pgdyno.target.kept_builds import kept_builds
from tests import children
from tests.cluster.test_run import pgdyno
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster

CONFIGURE = """#!/bin/sh
PACKAGE_NAME='PostgreSQL'
PACKAGE_VERSION='18.6'
echo "$(id -un) with $(env | cut -d= -f1 | sort | tr '\\n' ' ')configures $*"
echo told > config.log
sed -i "s|PREFIX|${1#--prefix=}|g" Makefile
"""
# Its programs are links to those of a real PostgreSQL, so that what it installs runs.
INSTALL = "mkdir -p PREFIX; ln -sfn BINDIR PREFIX/bin"
LEFT = f"777{os.getpid()}"  # seconds of a sleep that nobody else sleeps


class Case(NamedTuple):
    """A source to be spoilt, and the home where it is built."""

    source: Path
    home: Path

    @classmethod
    def made(cls, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Self:
        """A source that stands for PostgreSQL's, and a home that its builder can reach."""
        source = folder / "postgresql-18.6"
        (source / "contrib").mkdir(parents=True)
        (source / "contrib" / "Makefile").write_text("all:\ninstall:\n")
        (source / "configure").write_text(CONFIGURE)
        (source / "configure").chmod(0o755)
        monkeypatch.setenv("PGDYNO_HOME", str(folder / "home"))
        found = cls(source, folder / "home")
        found.home.mkdir()
        found.write()
        return found

    def write(self, compile_by: str = "echo compiling", install_by: str = INSTALL) -> None:
        """Another way to compile and to install."""
        bindir = find_binaries(Target("embedded"), postgres_user()).bindir
        steps = f"all:\n\t@{compile_by}\ninstall:\n\t@{install_by.replace('BINDIR', str(bindir))}\n"
        (self.source / "Makefile").write_text(steps)

    def build(self, recipe: Recipe, name: str | None = None) -> tuple[Build, bool]:
        """Build it, as the command line does."""
        how = How(name)
        return build(look(self.source), recipe, self.home, postgres_user(), _untrained, how)

    def folders(self) -> list[Path]:
        """What there is of builds, whole or not; the oldest first."""
        found = [path for path in self.home.glob("builds/*") if path.name != MARK]
        return sorted(found, key=lambda path: path.stat().st_ctime_ns)

    def logs(self) -> Path:
        """Those of a build that failed, of which nothing else is left."""
        assert kept_builds(self.home) == ()
        (folder,) = self.folders()
        assert [path.name for path in folder.iterdir()] == ["logs"]
        return folder / "logs"


def _untrained(_bindir: Path, _user: OsUser, _profiles: Path) -> None:
    """A training that leaves no profile."""


@pytest.fixture
def case(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    return Case.made(folder, monkeypatch)


def test_who_runs_it_compiles_it_in_an_environment_of_its_own(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CFLAGS", "LDFLAGS", "MAKEFLAGS", "COPT"):
        monkeypatch.setenv(name, "--no-such-option")

    done = pgdyno("build", case.source, "-O", "3", "--name", "good")

    assert done.stdout.startswith("good: PostgreSQL 18.6, gcc -O3; took ")
    (folder,) = case.folders()
    assert sorted(path.name for path in folder.iterdir()) == ["build.json", "install", "logs"]
    told = (folder / "logs" / "plain-configure.log").read_text()
    assert told.startswith(f"{postgres_user().name} with LC_ALL PATH PWD configures --prefix=")
    assert " CC=gcc CFLAGS=-O3\n" in told
    assert (folder / "logs" / "plain-config.log").read_text() == "told\n"
    assert "compiling" in (folder / "logs" / "plain-compile.log").read_text()


def test_a_step_that_fails_shows_the_end_of_its_log(case: Case) -> None:
    case.write("seq 1000; echo 'main.c:7: error: [nothing]'; false")

    done = pgdyno("build", case.source, code=3)

    log = case.logs() / "plain-compile.log"
    assert "make ended with code 2" in done.stderr
    told = "\n".join(line.strip() for line in done.stderr.splitlines())  # further lines: indented
    assert "\n1000\nmain.c:7: error: [nothing]\n" in told
    assert "\n900\n" not in told
    assert str(log) in "".join(done.stderr.split())
    assert "\n1\n2\n" in log.read_text()


def test_programs_that_do_not_run_are_no_build(case: Case) -> None:
    program = "PREFIX/bin/$$name; chmod +x PREFIX/bin/$$name"
    case.write(
        install_by="mkdir -p PREFIX/bin; for name in postgres initdb; do"
        f" printf '%s\\n' '#!/bin/sh' 'echo \"postgres (PostgreSQL) 18.6\"; exit 7' > {program};"
        " done"
    )
    with pytest.raises(TargetError, match="ended with code 7"):
        case.build(Recipe())
    case.logs()


def test_a_training_without_a_profile_is_no_training(case: Case) -> None:
    with pytest.raises(TargetError, match="the training left no profile"):
        case.build(Recipe(pgo=True))
    assert "-fprofile-generate=" in (case.logs() / "generate-configure.log").read_text()


def started(case: Case) -> subprocess.Popen[str]:
    """A build that is compiling, and would go on for long."""
    case.write(f"echo begun; exec sleep {LEFT}")
    process = children.started(
        [sys.executable, "-m", "pgdyno", "build", str(case.source)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + DEADLINE_S
    while not any("begun" in log.read_text() for log in case.home.glob("builds/*/logs/*compile*")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


def assert_nothing_compiles() -> None:
    """Whatever a build started is gone, or goes soon."""
    deadline = time.monotonic() + DEADLINE_S
    while any(LEFT in words for words in command_lines()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def command_lines() -> list[list[str]]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            found.append((entry / "cmdline").read_bytes().decode(errors="replace").split("\0"))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
def test_a_build_that_is_stopped_leaves_its_logs_alone(case: Case, number: signal.Signals) -> None:
    process = started(case)

    process.send_signal(number)
    _, stderr = process.communicate(timeout=DEADLINE_S)

    assert process.returncode == 130, stderr
    assert not any(LEFT in words for words in command_lines())
    case.logs()


def test_what_a_killed_build_left_is_swept_by_the_next(case: Case) -> None:
    process = started(case)
    process.kill()
    process.communicate(timeout=DEADLINE_S)
    assert_nothing_compiles()
    assert kept_builds(case.home) == ()
    case.write()

    done, known = case.build(Recipe())

    assert not known
    half, whole = case.folders()
    assert [path.name for path in half.iterdir()] == ["logs"]
    assert (whole.name, kept_builds(case.home)) == (done.ident, (done,))


def test_a_build_is_made_once_and_has_one_name(case: Case) -> None:
    first, known = case.build(Recipe())
    named, again = case.build(Recipe(), "plain")
    other, _ = case.build(Recipe(optimise="3"))

    assert (known, again) == (False, True)
    assert (first.name, named.name, named.ident) == (None, "plain", first.ident)
    assert case.build(Recipe()) == (named, True)
    with pytest.raises(PlanError, match="this very build is there, and is called 'plain'"):
        case.build(Recipe(), "other")
    with pytest.raises(PlanError, match=f"name 'plain' is taken by build {first.ident}"):
        case.build(Recipe(optimise="3"), "plain")
    with pytest.raises(PlanError, match=f"name 'plain' is taken by build {first.ident}"):
        case.build(Recipe(optimise="1"), "plain")
    with pytest.raises(PlanError, match="--name is 'No Name', which plans could not name"):
        case.build(Recipe(optimise="1"), "No Name")
    assert kept_builds(case.home) == (named, other)


def test_what_is_missing_is_said_before_anything_is_touched(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TargetError, match="there is no compiler gcc-99"):
        case.build(Recipe("gcc-99"))
    monkeypatch.setattr(steps, "compiler_version", lambda *_: "clang version 99")
    with pytest.raises(TargetError, match="there is no /opt/none/llvm-profdata-99"):
        case.build(Recipe("/opt/none/clang-99", pgo=True))
    with (
        locked_home(case.home),
        pytest.raises(TargetError, match="another pgdyno works in"),
    ):
        case.build(Recipe())
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=1 << 20))
    with pytest.raises(TargetError, match=r"has 1.00 MiB free, a build may need 2.00 GiB"):
        case.build(Recipe())
    assert case.folders() == []
