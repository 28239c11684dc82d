"""Builds of ours, each in a folder that is named by its content: `builds/IDENT` below the home."""

from __future__ import annotations

from pathlib import Path

from pgdyno.model.build import Build
from pgdyno.model.errors import TargetError
from pgdyno.model.serial import from_json, to_json

_RECORD = "build.json"


def build_folder(home: Path, ident: str) -> Path:
    """Where a build lies, with its logs."""
    return home / "builds" / ident


def build_bindir(home: Path, ident: str) -> Path:
    """Its programs."""
    return build_folder(home, ident) / "install" / "bin"


def kept_builds(home: Path) -> tuple[Build, ...]:
    """All builds that are complete, in the order in which they were made.

    Raises:
        TargetError: The record of one cannot be read.
    """
    found = []
    for path in (home / "builds").glob(f"*/{_RECORD}"):
        try:
            found.append(from_json(Build, path.read_text(encoding="utf-8")))
        except (ValueError, OSError) as error:  # also of a text that is none, or no such record
            raise TargetError(
                f"{path} is no record of a build that this pgdyno knows: {error}",
                f"Remove {path.parent}, and build it again.",
            ) from error
    return tuple(sorted(found, key=lambda build: build.built_unix_ns))


def keep_build(home: Path, build: Build) -> None:
    """Write a build's record: from now on it counts as complete."""
    path = build_folder(home, build.ident) / _RECORD
    fresh = path.with_suffix(".new")
    fresh.write_text(to_json(build), encoding="utf-8")
    fresh.replace(path)
