"""What a session of tests left on the machine; it may leave nothing.

All folders of the session lie in one, and its name stands in the environment of whatever the tests
start: so what is ours can be told from what another session, or a user, runs beside it. Programs of
another user get no environment of ours: they are known by the folders that they work in. A test
that needs a folder elsewhere names it as pgdyno does.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SESSION = "TESTS_OF_PGDYNO"  # a variable that begins with PG would not be handed on
PREFIX = "pgdyno-"
_OF_SESSION = re.compile(rf"{PREFIX}tests-(\d+)-")
_CHECKOUT = Path(__file__).resolve().parents[1]
PLACES = (Path("/tmp"), Path("/dev/shm"))
PATIENCE_S = 120.0  # for what was killed to be gone


@dataclass(frozen=True, slots=True)
class Machine:
    """What may not be more at the end than it was at the beginning."""

    folder: Path  # of the session
    folders: frozenset[Path]
    mounts: frozenset[str]
    loops: frozenset[str]


def machine(folder: Path) -> Machine:
    """The machine now."""
    return Machine(folder, frozenset(_folders()), frozenset(_mounts()), frozenset(_loops()))


def leftovers(before: Machine, basetemp: Path) -> list[str]:
    """What is there now and was not: one line each, once what is ending has had time to end."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := _leftovers(before, basetemp)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def _leftovers(before: Machine, basetemp: Path) -> list[str]:
    ours = (str(before.folder), str(basetemp))
    found = [f"process {pid}: {words}" for pid, words in _processes(before.folder)]
    for what, now, then in (("mount", _mounts(), before.mounts), ("loop", _loops(), before.loops)):
        found += [f"{what} {one}" for one in now if one not in then and any(o in one for o in ours)]
    found += [f"{path}" for path in before.folder.iterdir()]
    new = [path for path in _folders() if path not in before.folders and path != before.folder]
    return found + [f"{path}" for path in new if not _is_anothers(path)]


def _folders() -> Iterator[Path]:
    for place in PLACES:
        with suppress(OSError):
            yield from place.glob(f"{PREFIX}*")


def _mounts() -> list[str]:
    return Path("/proc/self/mounts").read_text().splitlines()


def _loops() -> Iterator[str]:
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # it may be detached meanwhile
            yield f"{file.parts[3]} of {file.read_text().strip()}"


def _processes(folder: Path) -> Iterator[tuple[int, str]]:
    """Processes that a test started, or that work in its folders; but ourselves."""
    mark = f"{SESSION}={folder}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            marked = mark in (entry / "environ").read_bytes().split(b"\0")
            if words and (marked or _works_in(entry, folder)):
                yield int(entry.name), words.strip()


def _is_anothers(path: Path) -> bool:
    """Whether another user or session made it, or a process that is none of ours works in it."""
    with suppress(FileNotFoundError):
        if os.geteuid() not in (0, path.stat().st_uid):
            return True
    if (named := _OF_SESSION.match(path.name)) and int(named[1]) != os.getpid():
        return True  # also of one that was killed: those that a test begins lie in our own folder
    if path.is_file():  # what a defect is told in names the files of the checkout that it is of
        with suppress(OSError, UnicodeDecodeError):
            return f"{_CHECKOUT}/" not in path.read_text(encoding="utf-8")
    return any(_works_in(entry, path) for entry in Path("/proc").glob("[0-9]*"))


def _works_in(process: Path, path: Path) -> bool:
    with suppress(OSError):
        if str(path).encode() in (process / "cmdline").read_bytes():
            return True
        links = [process / "cwd", *(process / "fd").iterdir()]
        for link in links:
            with suppress(OSError):
                if Path(os.readlink(link)).is_relative_to(path):
                    return True
    return False
