"""The source of PostgreSQL: a folder or a tarball, its version and its hash."""

from __future__ import annotations

import hashlib
import lzma
import re
import shutil
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pgdyno.model.errors import PlanError, TargetError
from pgdyno.plan.resolve.plan import MAJORS
from pgdyno.plan.schema.files import BadFile, require_regular

_PACKAGE = re.compile(
    r"^PACKAGE_NAME='PostgreSQL'$.*?^PACKAGE_VERSION='((\d+)[.\w]*)'$", re.MULTILINE | re.DOTALL
)
_BROKEN = (tarfile.TarError, OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)
_CONFIGURE_BYTES = 8 << 20  # ten times PostgreSQL's; a tarball may claim any size
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
    """
    if path.is_dir():
        text, digest = _configure_of_tree(path), _digest_of_tree
    elif path.is_file():
        text, digest = _configure_of_tarball(path), _digest_of_file
    else:
        raise PlanError(f"{path} is neither a folder nor a file", _HINT)
    found = _PACKAGE.search(text)
    if found is None:
        raise PlanError(f"{path} is not the source of PostgreSQL", _HINT)
    if int(found[2]) not in MAJORS:
        raise PlanError(
            f"{path} is PostgreSQL {found[1]}, supported are {MAJORS[0]} to {MAJORS[-1]}"
        )
    return Source(path.absolute(), found[1], digest(path))


def unpack(source: Source, folder: Path) -> Path:
    """Put the files of a source into a new folder; returns the top of its tree.

    Raises:
        PlanError: The tarball would write outside of the folder.
        TargetError: The disk is full.
    """
    top = folder / "source"
    try:
        if source.path.is_dir():
            shutil.copytree(source.path, top, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            return top
        with tarfile.open(source.path) as archive:
            # Pythons differ in what they check and warn of; here we check ourselves.
            archive.extraction_filter = lambda member, _folder: member
            for member in archive:
                _require_inside(source.path, member)
                archive.extract(member, folder)
    except _BROKEN as error:
        raise TargetError(f"{source.path} cannot be unpacked into {folder}: {error}") from error
    next(path.parent for path in folder.glob("*/configure")).rename(top)
    return top


def _require_inside(path: Path, member: tarfile.TarInfo) -> None:
    known = member.isfile() or member.isdir() or member.issym()
    for name in (member.name, member.linkname):
        inside = PurePosixPath(name)
        if not known or inside.is_absolute() or ".." in inside.parts:
            raise PlanError(f"{path} holds {name}, which is not a file inside it", _HINT)


def _configure_of_tree(path: Path) -> str:
    if (path / "config.status").exists():
        raise PlanError(
            f"{path} was configured already", "Clean it with `make distclean`, or name another."
        )
    configure = path / "configure"
    if not configure.is_file():
        raise PlanError(f"{path} holds no configure", _HINT)
    with configure.open("rb") as handle:
        return handle.read(_CONFIGURE_BYTES).decode(errors="replace")


def _configure_of_tarball(path: Path) -> str:
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                parts = PurePosixPath(member.name).parts
                if member.isfile() and len(parts) == 2 and parts[1] == "configure":
                    handle = archive.extractfile(member)
                    assert handle is not None
                    return handle.read(_CONFIGURE_BYTES).decode(errors="replace")
    except _BROKEN as error:
        raise PlanError(f"{path} is not a tarball: {error}", _HINT) from error
    raise PlanError(f"{path} holds no configure", _HINT)


def _digest_of_file(path: Path) -> str:
    try:
        require_regular(path)
    except BadFile as error:
        raise PlanError(f"{path} {error}", _HINT) from error
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _digest_of_tree(path: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path)
        if ".git" in name.parts or (file.is_dir() and not file.is_symlink()):
            continue
        content = str(file.readlink()) if file.is_symlink() else _digest_of_file(file)
        digest.update(f"{name}\0{content}\0".encode())
    return digest.hexdigest()
