"""Compiles a source by a recipe into a build of ours; every step leaves its log.

Everything runs as the user who runs PostgreSQL, with an environment of its own: neither root's
rights nor a CFLAGS of the user's shell get into a build that is named by its content. What comes
out is copied into a folder of ours: nobody changes a build once it is one.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pgdyno.access import user_name
from pgdyno.builder.recipe import (
    MERGED,
    Pass,
    build_ident,
    cflags,
    configure_arguments,
    is_clang,
    recipe_text,
    require_possible,
)
from pgdyno.builder.source import Source, unpack
from pgdyno.builder.trees import copy_tree
from pgdyno.folders import Folder, owner_of
from pgdyno.model.build import Build, Recipe
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.plan import Target
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import listed
from pgdyno.plan.schema.plan_file import NAME
from pgdyno.shell import CLOSE_IT, OsUser, folders_left_out, left_out, run, search_path, start
from pgdyno.target.binaries import find_binaries
from pgdyno.target.cluster import server_settings
from pgdyno.target.home import BUILDS, locked_home, our_folder, require_reachable
from pgdyno.target.host_facts import this_machine
from pgdyno.target.kept_builds import build_bindir, build_folder, keep_build, kept_builds

LOGS = "logs"
_STEP_S = 7200.0  # -O3 with LTO on a slow machine takes its time
_PLAIN = re.compile(r"[\w./+:@=-]+")
_SPACE_BYTES = 2 << 30  # with LTO or profiles; see docs/numbers.md
_TAIL_LINES = 20
_PARTS = (".", "contrib")  # server and programs; extensions, pg_prewarm among them
_HALF = re.compile(r"[0-9a-f]{12}")
_OURS = "install.ours"  # while what was installed is copied

Train = Callable[[Path, OsUser, Path], None]
"""Runs a workload on the programs of a folder; they leave their profiles in another."""


@dataclass(frozen=True, slots=True)
class How:
    """How a build goes about it; nothing of this shapes what comes out."""

    name: str | None = None  # what it shall be called
    jobs: int | None = None  # of make; None: one for each CPU
    said: Callable[[str], None] = lambda _: None  # hears of each phase


def build(
    source: Source, recipe: Recipe, home: Path, user: OsUser, train: Train, how: How = How()
) -> tuple[Build, bool]:
    """Compile, unless this very build is there already.

    Args:
        source: Of PostgreSQL.
        recipe: How.
        home: Where builds are kept.
        user: Who compiles it and will run it.
        train: For PGO.
        how: Name, jobs, and who is told.

    Returns:
        The build, and whether it was there already.

    Raises:
        PlanError: The recipe is impossible, or the name is taken.
        TargetError: A step failed; its log is kept. Or the compiler is missing, the disk too
            small, another pgdyno at work.
    """
    require_possible(recipe)
    _require_plain(home)
    if how.name is not None and not NAME.fullmatch(how.name):
        raise PlanError(f"--name is {how.name!r}, which plans could not name")
    version = compiler_version(recipe, user)
    cpu = this_machine().cpu_model if recipe.native else None
    ident = build_ident(recipe, source.digest, version, cpu)
    with locked_home(home) as locked:
        require_reachable(home, user)
        there = {one.ident: one for one in kept_builds(home)}
        if ident in there:
            return _named(there[ident], how.name, home), True
        _require_free(how.name, home)
        with our_folder(locked, BUILDS) as builds:
            _sweep(builds, set(there))
            work = _Work(recipe, home, ident, user, how)
            work.cook(builds, source, train)
        done = Build(
            ident, how.name, f"PostgreSQL {source.version}", recipe_text(recipe), version, cpu,
            recipe, str(source.path), source.digest, time.time_ns(), work.seconds,
        )  # fmt: skip
        keep_build(home, done)
        return done, False


def _require_plain(home: Path) -> None:
    """Refuse a home that `make` and the shell behind it would read as something else than a path.

    It stands in CFLAGS and in --prefix, where nothing can be quoted for both.
    """
    if not _PLAIN.fullmatch(str(home)):
        raise PlanError(
            f"PGDYNO_HOME is {str(home)!r}, and make reads some of that otherwise",
            "Builds need a home of letters, digits and . _ / + : @ = - only.",
        )


def compiler_version(recipe: Recipe, user: OsUser) -> str:
    """The first line that a compiler says of itself.

    Raises:
        TargetError: It is not there.
    """
    if shutil.which(recipe.compiler, path=search_path(user)) is None:
        if why := left_out(recipe.compiler, user):
            raise TargetError(why, CLOSE_IT)
        raise TargetError(f"there is no compiler {recipe.compiler}", "Install it, or name another.")
    return run([recipe.compiler, "--version"], user=user).stdout.splitlines()[0].strip()


def _unsearched(user: OsUser) -> str:
    """What a build that lacks a program has to know; empty: it looked in all of PATH."""
    left = folders_left_out(user)
    if not left:
        return ""
    return f" Programs were not looked for in {listed(left)}, which others than root can change."


def _named(found: Build, name: str | None, home: Path) -> Build:
    """The build under a name; one that has another name keeps it, since plans may use it."""
    if name in (None, found.name):
        return found
    if found.name is not None:
        raise PlanError(f"this very build is there, and is called {found.name!r}, not {name!r}")
    _require_free(name, home)
    renamed = replace(found, name=name)
    keep_build(home, renamed)
    return renamed


def _require_free(name: str | None, home: Path) -> None:
    for other in kept_builds(home):
        if name is not None and other.name == name:
            raise PlanError(
                f"name {name!r} is taken by build {other.ident}: {other.version},"
                f" {other.recipe_text}",
                f"Choose another, or remove that one: `pgdyno builds remove {name}`.",
            )


def _sweep(builds: Folder, whole: set[str]) -> None:
    """Remove what killed builds left, but for their logs."""
    for name in builds.names():
        if _HALF.fullmatch(name) and name not in whole:
            with builds.into(name) as folder:
                for part in ("work", "install", _OURS):
                    folder.remove_folder(part)


@dataclass(slots=True)
class _Work:
    """A build under way."""

    recipe: Recipe
    home: Path
    ident: str
    user: OsUser
    how: How
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return build_folder(self.home, self.ident)

    @property
    def scratch(self) -> Path:
        return self.folder / "work"

    @property
    def tree(self) -> Path:
        return self.scratch / "tree" / "source"

    @property
    def profiles(self) -> Path:
        return self.scratch / "profiles"

    @property
    def bindir(self) -> Path:
        return build_bindir(self.home, self.ident)

    def cook(self, builds: Folder, source: Source, train: Train) -> None:
        """From the source to programs that run; of a failure only the logs stay."""
        if self.recipe.pgo and is_clang(self.recipe):
            self.llvm("profdata")  # that it is missing should not be told after the first pass
        free = shutil.disk_usage(builds.path).free
        if free < _SPACE_BYTES:
            raise TargetError(
                f"{builds.path} has {bytes_text(free)} free, a build may need"
                f" {bytes_text(_SPACE_BYTES)}"
            )
        builds.remove_folder(self.ident)
        with builds.make(self.ident) as folder:
            folder.make(LOGS).close()
            with folder.make("work") as scratch:
                scratch.make(self.profiles.name, 0o755, owner_of(self.user)).close()
            try:
                self._passes(folder, source, train)
            except BaseException:
                for name in ("install", _OURS):
                    folder.remove_folder(name)
                raise
            finally:
                folder.remove_folder("work")

    def _passes(self, folder: Folder, source: Source, train: Train) -> None:
        passes: tuple[Pass, ...] = ("generate", "use") if self.recipe.pgo else ("plain",)
        for which in passes:
            self.compile(folder, source, which)
            if which == "generate":
                with self.phase("train"):
                    self.train(train)
        self.take_over(folder)
        with self.phase("start"):  # what does not run is no build
            target = Target("installed", bindir=str(self.bindir))
            server_settings(find_binaries(target, self.user), self.user)

    def take_over(self, folder: Folder) -> None:
        """Make what the user installed ours, by a copy."""
        with folder.into("install") as installed, folder.make(_OURS) as ours:
            copy_tree(installed, ours, self._installed_file)
        folder.remove_folder("install")
        folder.rename(_OURS, "install")

    def _installed_file(self, folder: Folder, name: str) -> int:
        """A file to be read that the user installed, and nobody else."""
        handle = folder.open(name, self.user.uid)
        if (uid := os.fstat(handle).st_uid) != self.user.uid:
            os.close(handle)
            raise TargetError(f"{folder.path / name} belongs to user {user_name(uid)}")
        return handle

    def compile(self, folder: Folder, source: Source, which: Pass) -> None:
        """One pass; profiles know their objects by path, so that each has the same tree."""
        with self.phase("unpack"), Folder.hold(self.scratch) as scratch:
            scratch.remove_folder("tree")
            # Closed to all others until it is theirs, so that nobody can plant a link meanwhile.
            with scratch.make("tree", 0o700) as tree:
                unpack(source, tree)
                whose = f"{self.user.uid}:{self.user.gid}"
                run(["chown", "-hR", whose, "."], folder=tree.handle, timeout_s=_STEP_S)
        flags = cflags(self.recipe, which, str(self.profiles))
        with self.phase("configure"):
            try:
                self.step(
                    f"{which}-configure", "./configure", f"--prefix={self.bindir.parent}",
                    *configure_arguments(self.recipe), f"CC={self.recipe.compiler}",
                    f"CFLAGS={flags}", *self.archiver(),
                )  # fmt: skip
            finally:
                self.keep_log(folder, f"{which}-config.log")
        make = ["make", f"-j{self.how.jobs or len(os.sched_getaffinity(0))}"]
        if which == "generate":
            # libpq refuses to be linked with what calls exit, which instrumentation does; this word
            # tells it of that, and of nothing else.
            make.append("enable_coverage=yes")
        with self.phase("compile"):
            for part in _PARTS:
                self.step(f"{which}-compile", *make, "-C", part)
        with self.phase("install"):
            folder.remove_folder("install")
            folder.make("install", 0o755, owner_of(self.user)).close()
            for part in _PARTS:
                self.step(f"{which}-install", *make, "-C", part, "install")

    def keep_log(self, folder: Folder, name: str) -> None:
        """Keep the log that configure wrote, if it came so far."""
        with suppress(TargetError), Folder.hold(self.tree) as tree, folder.into(LOGS) as logs:
            logs.write(name, tree.read("config.log", self.user.uid))

    def train(self, train: Train) -> None:
        """Run the workload on the instrumented programs; refuse to go on without a profile."""
        train(self.bindir, self.user, self.profiles)
        if is_clang(self.recipe):
            raw = [str(path) for path in self.profiles.glob("*.profraw")]
            if raw:
                merged = str(self.profiles / MERGED)
                self.step("merge", self.llvm("profdata"), "merge", "-o", merged, *raw)
        else:
            raw = [str(path) for path in self.profiles.rglob("*.gcda")]
        if not raw:
            raise TargetError("the training left no profile", f"See {self.folder / LOGS}.")

    def archiver(self) -> list[str]:
        """With LTO an archive holds the compiler's own code, which plain ar does not index."""
        if not self.recipe.lto:
            return []
        if is_clang(self.recipe):
            return [f"AR={self.llvm('ar')}", f"RANLIB={self.llvm('ranlib')}"]
        path, _, name = self.recipe.compiler.rpartition("gcc")  # gcc-12: gcc-ar-12
        return [f"AR={path}gcc-ar{name}", f"RANLIB={path}gcc-ranlib{name}"]

    def llvm(self, tool: str) -> str:
        """The tool of this clang: clang-14 goes with llvm-ar-14."""
        path, _, suffix = self.recipe.compiler.rpartition("clang")
        name = f"{path}llvm-{tool}{suffix}"
        if shutil.which(name, path=search_path(self.user)) is None:
            if why := left_out(name, self.user):
                raise TargetError(why, CLOSE_IT)
            raise TargetError(f"there is no {name}", "Install the llvm that goes with this clang.")
        return name

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.how.said(name)
        began = time.monotonic()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began

    def step(self, log: str, *command: str) -> None:
        """Run a program in the tree; its words go to a log."""
        path = self.folder / LOGS / f"{log}.log"
        clean = ["env", "-i", "-C", str(self.tree), f"PATH={search_path(self.user)}", "LC_ALL=C"]
        with Folder.hold(path.parent) as logs:
            handle = logs.log(path.name)
        try:
            process = start(
                [*clean, *command], user=self.user, log=handle, dies_with_us=signal.SIGTERM
            )
        finally:
            os.close(handle)
        try:
            code = process.wait_unreaped(_STEP_S)
        finally:
            process.kill_group()
        if code != 0:
            tail = path.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
            how = f"ended with code {code}" if code else f"did not end within {_STEP_S:.0f} s"
            raise TargetError(
                f"{command[0]} {how}; the end of its log:\n" + "\n".join(tail),
                f"All of it stands in {path}.{_unsearched(self.user)}",
            )
