"""How many huge pages a server needs: counted by the server itself, never computed here.

A server that stands still is asked by `postgres -C shared_memory_size_in_huge_pages`, which 15 and
later know. Of one that runs, its shared memory is measured as the manuals before 15 have it: the
mapping that all its processes share, divided by the size of a huge page. That holds for all
versions, and both ways count the same.
"""

from __future__ import annotations

import os
import pwd
import re
from dataclasses import dataclass
from pathlib import Path

import psycopg

from pgdyno.folders import Folder
from pgdyno.linter.combined import HUGE_MOST
from pgdyno.linter.source import parse
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.plan import Target
from pgdyno.model.system_errors import reason
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import plural
from pgdyno.shell import OsUser, postgres_user, run
from pgdyno.target.binaries import Binaries, find_binaries
from pgdyno.target.conninfo import reach
from pgdyno.target.host_facts import host_facts, read_meminfo
from pgdyno.target.server_host import server_host_of

TELLS_SINCE = 15  # the first version with shared_memory_size_in_huge_pages
SIZED_SINCE = 14  # with huge_page_size
_CONF, _PID_FILE = "postgresql.conf", "postmaster.pid"
_SMALL_BYTES = 4096
_GUC = "shared_memory_size_in_huge_pages"
_PLACES = ("/usr/lib/postgresql/{}/bin", "/usr/pgsql-{}/bin")  # of Debian, of Red Hat
# Made by mmap, by mmap of huge pages, by System V (shared_memory_type = sysv).
_MAPPED = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) rw-s .* (?:/dev/zero|/anon_hugepage|/SYSV\w+)(?: \(deleted\))?$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Count:
    """Huge pages of this machine's default size that one server needs."""

    server: str  # as it was named
    pages: int
    how: str  # it was counted


def count(server: str, bindir: Path | None = None) -> Count:
    """Count the huge pages that a server of this machine needs.

    Args:
        server: Its data directory, the folder of its postgresql.conf, or a conninfo.
        bindir: The folder of its programs, where they are not in a usual place.

    Raises:
        PlanError: It is neither, or it wants huge pages of another size.
        TargetError: It cannot be asked, or it runs on another machine.
    """
    if Path(server).is_dir():  # programs run elsewhere, where a relative path is another one
        return _of_folder(str(Path(server).absolute()), bindir)
    if "=" in server or "://" in server:
        return _of_running(server)
    raise PlanError(
        f"{server!r} is neither a folder nor a conninfo",
        "Name a data directory, or 'host=… dbname=postgres'.",
    )


def total(counts: tuple[Count, ...]) -> int:
    """Huge pages of several servers together.

    Raises:
        PlanError: They are more than this machine can spare.
    """
    pages = sum(one.pages for one in counts)
    facts = host_facts(Path("/"))
    size = pages * facts.huge_page_bytes
    if size > HUGE_MOST * facts.memory_bytes:
        raise PlanError(
            f"{plural(pages, 'huge page is', 'huge pages are')} {bytes_text(size)},"
            f" the machine has {bytes_text(facts.memory_bytes)}",
            "What is kept for huge pages is lost to all else: lower shared_buffers.",
        )
    return pages


def mapped_pages(maps: str, page_bytes: int) -> int | None:
    """Huge pages that hold a server's shared memory, by /proc/PID/maps of one of its processes."""
    sizes = [int(end, 16) - int(begin, 16) for begin, end in _MAPPED.findall(maps)]
    return -(-max(sizes) // page_bytes) if sizes else None


def _of_running(conninfo: str) -> Count:
    connection = reach(conninfo)
    if server_host_of(connection).memory_bytes is None:
        raise TargetError(
            f"the server of {connection.shown()} does not run on this machine",
            "Count its huge pages where it runs.",
        )
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        row = session.execute(
            "SELECT pg_backend_pid(), current_setting(%s, true), (SELECT setting::bigint * 1024"
            " FROM pg_settings WHERE name = 'huge_page_size')",
            (_GUC,),
        ).fetchone()
        assert row is not None
        pid, text, page_bytes = row
        _same_size(page_bytes)
        if text is not None:
            return Count(connection.shown(), _pages(text), f"by SHOW {_GUC}")
        return _mapped(connection.shown(), pid)


def _of_folder(server: str, bindir: Path | None) -> Count:
    try:
        data = _data_directory(Path(server))
        with Folder.hold(data) as held:
            owner = held.facts.st_uid
            major = _number(held, "PG_VERSION", owner)
            pid = _postmaster(held, owner)
        user_name = pwd.getpwuid(owner).pw_name
    except TargetError as error:
        hint = f"Is {server} a data directory? It is read as its owner, or as root."
        raise TargetError(error.fact, error.hint or hint) from error
    except OSError as error:
        raise TargetError(f"cannot read {error.filename}: {reason(error)}") from error
    if not (Path(server) / "postgresql.conf").exists():
        if pid is not None:
            return _mapped(server, pid)
        raise PlanError(
            f"{server} holds no postgresql.conf",
            "Debian keeps it under /etc/postgresql: name that folder, or start the server.",
        )
    user = postgres_user(user_name)
    asked: list[str | Path] = [
        _binaries(major, bindir, user).program("postgres"),
        "-D",
        server,
        "-C",
    ]
    if major >= SIZED_SINCE:
        _same_size(int(run([*asked, "huge_page_size"], user=user).stdout) * 1024)
    if pid is not None:
        return _mapped(server, pid)
    if major < TELLS_SINCE:
        raise TargetError(
            f"PostgreSQL {major} says how much shared memory it takes only while it runs",
            "Start it once, with huge_pages = off if it does not start otherwise.",
        )
    return Count(server, _pages(run([*asked, _GUC], user=user).stdout), f"by postgres -C {_GUC}")


def _data_directory(folder: Path) -> Path:
    """The folder itself, or where its postgresql.conf says: Debian keeps the two apart."""
    with Folder.hold(folder) as held:
        if held.has("PG_VERSION") or not held.has(_CONF):
            return folder
        text = held.read(_CONF, held.facts.st_uid)
    for at in parse(str(folder / _CONF), "postgresql", text).assignments:
        if at.name == "data_directory":
            return Path(at.value)
    return folder


def _postmaster(data: Folder, owner: int) -> int | None:
    """The first process of a server that runs; what a crash left behind does not count."""
    if not data.has(_PID_FILE):
        return None
    pid = _number(data, _PID_FILE, owner)
    try:
        runs_there = os.path.samestat(os.stat(f"/proc/{pid}/cwd"), data.facts)
    except FileNotFoundError:
        return None
    return pid if runs_there else None


def _number(folder: Folder, name: str, owner: int) -> int:
    """The first line of a small file, which is a number; what else is in it is not shown."""
    first = folder.read(name, owner, _SMALL_BYTES).partition("\n")[0].strip()
    if not (first.isascii() and first.isdecimal()):
        raise TargetError(
            f"{folder.path / name} does not begin with a number",
            "A data directory has it whole: look again in a moment, or start the server.",
        )
    return int(first)


def _mapped(server: str, pid: int) -> Count:
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    except OSError as error:
        raise TargetError(
            f"cannot read /proc/{pid}/maps: {reason(error)}",
            "Do it as the server's user, or as root.",
        ) from error
    pages = mapped_pages(maps, _page_bytes())
    if pages is None:
        raise TargetError(f"process {pid} of {server} shares no memory that looks like a cache")
    return Count(server, pages, f"measured: the shared memory of process {pid}, as it runs now")


def _page_bytes() -> int:
    return read_meminfo(Path("/proc/meminfo").read_text(encoding="utf-8"))["Hugepagesize"]


def _same_size(wanted_bytes: int | None) -> None:
    here = _page_bytes()
    if wanted_bytes and wanted_bytes != here:
        raise PlanError(
            f"the server asks for huge pages of {bytes_text(wanted_bytes)},"
            f" vm.nr_hugepages counts those of {bytes_text(here)}",
            f"Set /sys/kernel/mm/hugepages/hugepages-{wanted_bytes >> 10}kB/nr_hugepages.",
        )


def _pages(text: str) -> int:
    pages = int(text)
    if pages < 0:
        raise TargetError(f"{_GUC} is {pages}: this build of PostgreSQL knows no huge pages")
    return pages


def _binaries(major: int, bindir: Path | None, user: OsUser) -> Binaries:
    """Programs of a major version: those named, the embedded ones, those of a package."""
    if bindir is not None:
        named = find_binaries(Target("installed", str(bindir)), user)
        if named.version_num // 10000 != major:
            raise PlanError(f"{bindir} is {named.version}, the cluster is of PostgreSQL {major}")
        return named
    embedded = find_binaries(Target("embedded"), user)
    if embedded.version_num // 10000 == major:
        return embedded
    for location in _PLACES:
        folder = Path(location.format(major))
        if (folder / "postgres").exists():
            return find_binaries(Target("installed", str(folder)), user)
    raise TargetError(f"no programs of PostgreSQL {major} found", "Name their folder: --bindir.")
