"""The source of PostgreSQL: a folder or a tarball, its version and its hash."""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath

from pgdyno.access import stranger_on
from pgdyno.builder.trees import copy_tree, files, link_target
from pgdyno.folders import Folder
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.system_errors import told
from pgdyno.plan.resolve.plan import MAJORS

_PACKAGE = re.compile(
    r"^PACKAGE_NAME='PostgreSQL'$.*?^PACKAGE_VERSION='((\d+)[.\w]*)'$", re.MULTILINE | re.DOTALL
)
_BROKEN = (tarfile.TarError, OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)
_CONFIGURE_BYTES = 8 << 20  # ten times PostgreSQL's; a tarball may claim any size
_TOP, _HISTORY = "source", ".git"
_HINT = "Name PostgreSQL's source: its top folder, or a tarball of postgresql.org."


@dataclass(frozen=True, slots=True)
class Source:
    """Where the source lies, and what it is."""

    path: Path
    version: str  # e.g. "15.18"
    digest: str  # SHA-256 of the tarball, or of names and contents of all files of the folder


def look(path: Path) -> Source:
    """Find out what a source is.

    Raises:
        PlanError: It is not the source of PostgreSQL, was configured already, or is of a version
            that is not supported.
        TargetError: It cannot be read; or root is to read it, and somebody could have put links to
            root's files there.
    """
    if path.is_dir():
        with Folder.hold(_real(path)) as top:
            text, digest = _configure_of_tree(top), _digest_of_tree(top)
    elif path.is_file():
        with _tarball(path) as file:
            text, digest = _configure_of_tarball(path, file), _digest_of_file(file)
    else:
        raise PlanError(f"{path} is neither a folder nor a file", _HINT)
    found = _PACKAGE.search(text)
    if found is None:
        raise PlanError(f"{path} is not the source of PostgreSQL", _HINT)
    if int(found[2]) not in MAJORS:
        raise PlanError(
            f"{path} is PostgreSQL {found[1]}, supported are {MAJORS[0]} to {MAJORS[-1]}"
        )
    return Source(path.absolute(), found[1], digest)


def unpack(source: Source, folder: Folder) -> Path:
    """Put the files of a source into a new folder of ours; returns the top of its tree.

    Raises:
        PlanError: The tarball would write outside of the folder.
        TargetError: As `look`; the disk is full, or the source has changed since.
    """
    top = folder.path / _TOP
    if source.path.is_dir():
        with Folder.hold(_real(source.path)) as tree, folder.make(_TOP) as copy:
            copy_tree(tree, copy, Folder.open_given, but=_HISTORY)
            _require_same(source, _digest_of_tree(copy))
        return top
    with _tarball(source.path) as file:
        _require_same(source, _digest_of_file(file))
        try:
            with tarfile.open(fileobj=file) as archive:
                # Pythons differ in what they check and warn of; here we check ourselves.
                archive.extraction_filter = lambda member, _folder: member
                for member in archive:
                    _require_inside(source.path, member)
                    archive.extract(member, folder.path)
        except _BROKEN as error:
            raise TargetError(
                f"{source.path} cannot be unpacked into {folder.path}: {told(error)}"
            ) from error
    next(path.parent for path in folder.path.glob("*/configure")).rename(top)
    return top


def _require_same(source: Source, digest: str) -> None:
    if digest != source.digest:
        raise TargetError(
            f"{source.path} has changed since pgdyno looked at it",
            "Build again, once nobody works in it any more.",
        )


def _real(path: Path) -> Path:
    """Where a path leads; as root, links of others on the way stay, and whoever opens refuses."""
    return path.resolve() if os.geteuid() != 0 or stranger_on(path) is None else path


@contextmanager
def _tarball(path: Path) -> Iterator[BufferedReader]:
    real = _real(path)
    with (
        Folder.hold(real.parent) as folder,
        os.fdopen(folder.open_given(real.name), "rb") as file,
    ):
        yield file


def _require_inside(path: Path, member: tarfile.TarInfo) -> None:
    known = member.isfile() or member.isdir() or member.issym()
    for name in (member.name, member.linkname):
        inside = PurePosixPath(name)
        if not known or inside.is_absolute() or ".." in inside.parts:
            raise PlanError(f"{path} holds {name}, which is not a file inside it", _HINT)


def _configure_of_tree(top: Folder) -> str:
    if top.has("config.status"):
        raise PlanError(
            f"{top.path} was configured already", "Clean it with `make distclean`, or name another."
        )
    if not top.has("configure"):
        raise PlanError(f"{top.path} holds no configure", _HINT)
    with os.fdopen(top.open_given("configure"), "rb") as handle:
        return handle.read(_CONFIGURE_BYTES).decode(errors="replace")


def _configure_of_tarball(path: Path, file: BufferedReader) -> str:
    try:
        with tarfile.open(fileobj=file) as archive:
            for member in archive:
                parts = PurePosixPath(member.name).parts
                if member.isfile() and len(parts) == 2 and parts[1] == "configure":
                    handle = archive.extractfile(member)
                    assert handle is not None
                    return handle.read(_CONFIGURE_BYTES).decode(errors="replace")
    except _BROKEN as error:
        raise PlanError(f"{path} is not a tarball: {told(error)}", _HINT) from error
    raise PlanError(f"{path} holds no configure", _HINT)


def _digest_of_file(file: BufferedReader) -> str:
    """From its beginning; it stands there again afterwards."""
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return digest


def _digest_of_tree(top: Folder) -> str:
    found = []
    for path, folder in files(top, but=_HISTORY):
        where = link_target(folder, path.name)
        if where is None:
            with os.fdopen(folder.open_given(path.name), "rb") as file:
                content = _digest_of_file(file)
        else:
            content = str(PurePosixPath(where))
        found.append((path, content))
    digest = hashlib.sha256()
    for path, content in sorted(found):
        digest.update(f"{path}\0{content}\0".encode())
    return digest.hexdigest()
