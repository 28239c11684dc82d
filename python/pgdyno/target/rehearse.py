"""What can be known of stages before anything is loaded: their folders, and whether servers start.

A server is started once with the settings of each stage, on an empty cluster in the folder where
its trials will run: a library that is not there, memory that the kernel does not give, settings
that contradict each other. Loading, and the trials, then fail for none of these.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from pgdyno.model.errors import PgdynoError
from pgdyno.model.plan import Stage
from pgdyno.model.system_errors import reason
from pgdyno.model.units import bytes_text
from pgdyno.shell import OsUser
from pgdyno.target.binaries import Binaries
from pgdyno.target.cluster import Cluster, initdb
from pgdyno.target.file_systems import file_system
from pgdyno.target.home import closed_folder, remove_folder
from pgdyno.target.readback import read_back

Problem = tuple[str, str]  # stage, what is wrong

REHEARSAL = "rehearsal-"
"""Begin of the names of such data; what a killed run left is cleared with its trial's."""
_OF_THE_KERNEL = frozenset((
    "proc", "sysfs", "cgroup", "cgroup2", "devpts", "devtmpfs", "debugfs", "tracefs", "securityfs",
    "mqueue", "bpf", "pstore", "configfs", "efivarfs", "hugetlbfs", "fusectl", "binfmt_misc",
))  # fmt: skip


def folder_problems(
    stages: Sequence[Stage], user: OsUser, needed_bytes: int
) -> Iterator[tuple[Stage, str]]:
    """What is wrong with the folders that stages name; nothing is changed, nor tried.

    Args:
        stages: Of a plan.
        user: Who will run PostgreSQL there.
        needed_bytes: Of the data alone.
    """
    seen: set[str] = set()
    for stage in stages:
        if stage.folder is not None and stage.folder not in seen:
            seen.add(stage.folder)
            if problem := _folder_problem(Path(stage.folder), user, needed_bytes):
                yield stage, f"folder {stage.folder} {problem}"


def _folder_problem(folder: Path, user: OsUser, needed_bytes: int) -> str | None:
    try:
        if not folder.is_dir():
            return "is a file" if folder.exists() else "does not exist"
        problems = _unfit(folder, user)
        free = shutil.disk_usage(folder).free
        if free < needed_bytes:
            text = f"has {bytes_text(free)} free, the data alone are {bytes_text(needed_bytes)}"
            problems.append(text)
    except OSError as error:
        return f"cannot be used: {reason(error)}"
    return problems[0] if problems else None


def _unfit(folder: Path, user: OsUser) -> list[str]:
    kind, closed = file_system(folder)["type"], closed_folder(folder, user)
    checks = (
        (kind in _OF_THE_KERNEL, f"is of the file system {kind}, which keeps no data"),
        (os.statvfs(folder).f_flag & os.ST_RDONLY, "lies on a file system that is read-only"),
        (closed, f"cannot be entered by user {user.name}, who runs PostgreSQL: {closed} is closed"),
        (not os.access(folder, os.W_OK | os.X_OK), "cannot be written by this user"),
    )
    return [text for holds, text in checks if holds]


def rehearse(
    stages: Sequence[Stage],
    binaries: Callable[[str | None], Binaries],
    user: OsUser,
    further: Sequence[str],
    folder_of: Callable[[str | None], Path],
) -> Iterator[Problem]:
    """Start the server of each stage once, and name the stages whose server does not start.

    Args:
        stages: Of a plan; those that differ in nothing but their client are tried once.
        binaries: The installation of a build's ident.
        user: Who runs PostgreSQL.
        further: Arguments of initdb.
        folder_of: The folder of ours where the clusters of a stage's folder lie.

    Raises:
        TargetError: initdb fails, so that no stage can run.
    """
    tried: set[object] = set()
    made: dict[tuple[str | None, str | None], Path] = {}
    with ExitStack() as stack:
        for stage in stages:
            build = stage.build.ident if stage.build else None
            values = tuple((one.name, one.value) for one in stage.settings)
            if (key := (build, stage.folder, values)) in tried:
                continue
            tried.add(key)
            try:
                if (build, stage.folder) not in made:
                    data = folder_of(stage.folder) / f"{REHEARSAL}{len(made)}"
                    made[build, stage.folder] = data
                    stack.callback(remove_folder, data)
                    initdb(binaries(build), data, user, ("--no-sync", *further))
                cluster = Cluster(binaries(build), made[build, stage.folder], user, "socket")
                try:
                    cluster.start(stage.settings)
                    read_back(cluster.connection(), stage.settings)
                    cluster.stop(clean=False)
                finally:
                    cluster.close()
            except PgdynoError as error:
                yield stage.name, error.fact
