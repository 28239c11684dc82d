"""Builds of ours, each in a folder that is named by its content: `builds/IDENT` below the home."""

from __future__ import annotations

from pathlib import Path

from pgdyno.folders import Folder
from pgdyno.model.build import Build
from pgdyno.model.errors import TargetError
from pgdyno.model.record_json import from_json, to_json
from pgdyno.target.home import BUILDS

_RECORD = "build.json"


def build_folder(home: Path, ident: str) -> Path:
    """Where a build lies, with its logs."""
    return home / BUILDS / ident


def build_bindir(home: Path, ident: str) -> Path:
    """Its programs."""
    return build_folder(home, ident) / "install" / "bin"


def kept_builds(home: Path) -> tuple[Build, ...]:
    """All builds that are complete, in the order in which they were made.

    Raises:
        TargetError: The record of one cannot be read.
    """
    if not (home / BUILDS).is_dir():
        return ()
    found = []
    with Folder.hold(home / BUILDS) as builds:
        for name in builds.names():
            if not (builds.path / name).is_dir():
                continue  # the mark
            try:
                with builds.into(name) as folder:
                    if folder.has(_RECORD):
                        found.append(from_json(Build, folder.read(_RECORD)))
            except (ValueError, TargetError) as error:  # also of a text that is none
                raise TargetError(
                    f"{builds.path / name / _RECORD} is not a record of a build that this pgdyno"
                    f" knows: {error}",
                    f"Remove {builds.path / name}, and build it again.",
                ) from error
    return tuple(sorted(found, key=lambda build: build.built_unix_ns))


def keep_build(home: Path, build: Build) -> None:
    """Write a build's record: from now on it counts as complete."""
    with Folder.hold(build_folder(home, build.ident)) as folder:
        folder.write(_RECORD, to_json(build))
