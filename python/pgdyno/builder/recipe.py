"""From a recipe to flags, to configure's arguments, and to the name of what they give."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict
from pathlib import PurePath
from typing import Literal, TypeAlias

from pgdyno.model.build import Recipe
from pgdyno.model.errors import PlanError

Pass: TypeAlias = Literal["plain", "generate", "use"]
"""PGO compiles twice: to generate a profile, and to use it."""

OPTIMISE = ("0", "1", "2", "3", "s")
BLOCKS_KB = (1, 2, 4, 8, 16, 32)
WAL_BLOCKS_KB = (1, 2, 4, 8, 16, 32, 64)
FEATURES = (
    "icu", "libnuma", "liburing", "llvm", "lz4", "openssl", "readline", "zlib", "zstd",
)  # fmt: skip
# configure takes these unless told otherwise; a build must not depend on what lies around here.
_UNASKED = ("icu", "readline", "zlib")
_FLAG = re.compile(r"-[\w=,.+/:-]+", re.ASCII)  # goes through make and a shell unharmed
_DEFAULT_KB = 8
_IDENT_LETTERS = 12
_WAY = 1  # counted up when the same recipe comes to give another build


def require_possible(recipe: Recipe) -> None:
    """Refuse a recipe that nobody can cook.

    Raises:
        PlanError: A value is not one of those allowed.
    """
    for option, value, allowed in (
        ("-O", recipe.optimise, OPTIMISE),
        ("--block-kb", recipe.block_kb, BLOCKS_KB),
        ("--wal-block-kb", recipe.wal_block_kb, WAL_BLOCKS_KB),
        *(("--with", feature, FEATURES) for feature in recipe.features),
    ):
        if value not in allowed:
            raise PlanError(f"{option} is {value}; allowed: {', '.join(map(str, allowed))}")
    if not re.search("gcc|clang", PurePath(recipe.compiler).name):
        raise PlanError(f"--cc is {recipe.compiler}; allowed: a gcc or clang, e.g. gcc-14")
    for flag in recipe.flags.split():
        if not _FLAG.fullmatch(flag):
            raise PlanError(f"--flags holds {flag!r}; allowed: options of the compiler, as -g")


def is_clang(recipe: Recipe) -> bool:
    """Whether the compiler is clang, as far as its name tells."""
    return "clang" in PurePath(recipe.compiler).name


def cflags(recipe: Recipe, which: Pass = "plain", profiles: str = "") -> str:
    """Flags of the compiler in one pass.

    Args:
        recipe: The recipe.
        which: The pass.
        profiles: Folder of the profiles, of a pass that is not plain.
    """
    parts = [f"-O{recipe.optimise}"]
    if recipe.native:
        parts.append("-march=native")
    if recipe.lto:
        # Both in parallel: clang's other kind links in one thread.
        parts.append("-flto=thin" if is_clang(recipe) else "-flto=auto")
    if which == "generate":
        parts.append(f"-fprofile-generate={profiles}")
    elif which == "use" and is_clang(recipe):
        parts.append(f"-fprofile-use={profiles}/{MERGED} {_UNPROFILED}")
    elif which == "use":
        # Else gcc optimises for size whatever the training did not reach: any other workload
        # would be slower than without a profile.
        parts.append(f"-fprofile-use={profiles} -fprofile-partial-training")
    return " ".join([*parts, *recipe.flags.split()])


# Of programs that were not trained, or have other functions of one name (`main`), clang warns;
# configure takes any warning about its own small programs for an answer, and stops.
_UNPROFILED = " ".join(
    f"-Wno-{kind}"
    for kind in ("profile-instr-unprofiled", "profile-instr-out-of-date", "backend-plugin")
)

MERGED = "merged.profdata"
"""clang's profiles of all programs in one file, in the folder of profiles."""


def configure_arguments(recipe: Recipe) -> list[str]:
    """What ./configure is told beside prefix, compiler and flags."""
    without = [f"--without-{name}" for name in _UNASKED if name not in recipe.features]
    return [
        # Else an option that this version does not have would only be a warning.
        "--enable-option-checking=fatal",
        f"--with-blocksize={recipe.block_kb}",
        f"--with-wal-blocksize={recipe.wal_block_kb}",
        *without,
        *(f"--with-{name}" for name in recipe.features),
    ]


def build_ident(recipe: Recipe, source_digest: str, compiler_version: str, cpu: str | None) -> str:
    """The name of a build, from all that shapes it.

    Args:
        recipe: The recipe.
        source_digest: Hash of the source.
        compiler_version: In the compiler's own words.
        cpu: The model that it is compiled for; None: any.
    """
    content = {
        "way": _WAY, "recipe": asdict(recipe), "source": source_digest,
        "compiler": compiler_version, "cpu": cpu,
    }  # fmt: skip
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_IDENT_LETTERS]


def recipe_text(recipe: Recipe) -> str:
    """The recipe for people: `gcc -O3 -march=native -flto=auto`, with what else is special."""
    parts = [f"{PurePath(recipe.compiler).name} {cflags(recipe)}"]
    if recipe.pgo:
        parts[0] += " PGO"
    for what, size_kb in (("", recipe.block_kb), ("WAL ", recipe.wal_block_kb)):
        if size_kb != _DEFAULT_KB:
            parts.append(f"{what}pages of {size_kb} kB")
    if recipe.features:
        parts.append(f"with {', '.join(recipe.features)}")
    return ", ".join(parts)
