"""Recipes: flags, arguments of configure, names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgdyno.builder.compile import build
from pgdyno.builder.recipe import (
    Pass,
    build_ident,
    cflags,
    configure_arguments,
    recipe_text,
    require_possible,
)
from pgdyno.builder.source import Source
from pgdyno.model.build import Recipe
from pgdyno.model.errors import PlanError
from pgdyno.shell import OsUser

PLAIN = Recipe()
PGO = Recipe(pgo=True)


@pytest.mark.parametrize(
    ("recipe", "which", "flags"),
    [
        (PLAIN, "plain", "-O2"),
        (Recipe(optimise="3", native=True, lto=True), "plain", "-O3 -march=native -flto=auto"),
        (Recipe("clang", lto=True), "plain", "-O2 -flto=thin"),
        (Recipe("/opt/bin/clang-14", lto=True), "plain", "-O2 -flto=thin"),
        (Recipe("/opt/clang/gcc", lto=True), "plain", "-O2 -flto=auto"),
        (Recipe(flags="-g -pipe"), "plain", "-O2 -g -pipe"),
        (PGO, "generate", "-O2 -fprofile-generate=/p"),
        (PGO, "use", "-O2 -fprofile-use=/p -fprofile-partial-training"),
        (Recipe("clang", pgo=True), "generate", "-O2 -fprofile-generate=/p"),
        (
            Recipe("clang", pgo=True),
            "use",
            "-O2 -fprofile-use=/p/merged.profdata -Wno-profile-instr-unprofiled"
            " -Wno-profile-instr-out-of-date -Wno-backend-plugin",
        ),
    ],
)
def test_flags_follow_from_recipe_and_pass(recipe: Recipe, which: Pass, flags: str) -> None:
    assert cflags(recipe, which, "/p") == flags


def test_nothing_is_taken_from_the_system_unasked() -> None:
    assert configure_arguments(PLAIN) == [
        "--enable-option-checking=fatal", "--with-blocksize=8", "--with-wal-blocksize=8",
        "--without-icu", "--without-readline", "--without-zlib",
    ]  # fmt: skip
    asked = configure_arguments(Recipe(block_kb=32, wal_block_kb=64, features=("lz4", "zlib")))
    assert asked == [
        "--enable-option-checking=fatal", "--with-blocksize=32", "--with-wal-blocksize=64",
        "--without-icu", "--without-readline", "--with-lz4", "--with-zlib",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "fact"),
    [
        ({"optimise": "fast"}, "-O is fast; allowed: 0, 1, 2, 3, s"),
        ({"block_kb": 12}, "--block-kb is 12; allowed: 1, 2, 4, 8, 16, 32"),
        ({"wal_block_kb": 128}, "--wal-block-kb is 128; allowed: 1, 2, 4, 8, 16, 32, 64"),
        ({"features": ("lz4", "magic")}, "--with is magic; allowed: icu"),
        ({"compiler": "/gcc/tcc"}, "--cc is /gcc/tcc; allowed: a gcc or clang"),
        ({"flags": "-g native"}, "--flags holds 'native'; allowed: options of the compiler"),
        ({"flags": "-g;reboot"}, "--flags holds '-g;reboot'"),
        ({"flags": "-DX=$(HOME)"}, "--flags holds '-DX=$(HOME)'"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], fact: str) -> None:
    with pytest.raises(PlanError) as caught:
        require_possible(Recipe(**wrong))
    assert caught.value.fact.startswith(fact)


def test_what_can_be_is_not() -> None:
    flags = "-g -march=x86-64-v3 -fuse-ld=lld -DNAME=1,2 -I/opt/include"
    require_possible(Recipe("/opt/bin/gcc-14", "s", flags=flags, features=("llvm", "zstd")))


def test_the_name_follows_from_all_that_shapes_the_build() -> None:
    others = [
        replace(PLAIN, optimise="3"), replace(PLAIN, native=True), replace(PLAIN, lto=True),
        PGO, replace(PLAIN, block_kb=16), replace(PLAIN, wal_block_kb=16),
        replace(PLAIN, features=("lz4",)), replace(PLAIN, flags="-g"), Recipe("clang"),
    ]  # fmt: skip
    names = [build_ident(recipe, "source", "gcc 12", None) for recipe in (PLAIN, *others)]
    names += [
        build_ident(PLAIN, "other", "gcc 12", None),
        build_ident(PLAIN, "source", "gcc 13", None),
        build_ident(PLAIN, "source", "gcc 12", "EPYC"),
    ]
    assert len(set(names)) == len(names)
    assert build_ident(Recipe(), "source", "gcc 12", None) == names[0]


def test_a_recipe_is_told_in_a_line() -> None:
    assert recipe_text(PLAIN) == "gcc -O2"
    recipe = Recipe("/opt/bin/clang-14", "3", True, True, True, "-g", 32, 16, ("lz4", "zstd"))
    assert recipe_text(recipe) == (
        "clang-14 -O3 -march=native -flto=thin -g PGO, pages of 32 kB, WAL pages of 16 kB,"
        " with lz4, zstd"
    )


@pytest.mark.parametrize("name", ["a b", "$(touch x)", "a;b", "a'b", "a\\b", "ü\n"])
def test_a_home_that_make_would_carry_out_is_refused(tmp_path: Path, name: str) -> None:
    source = Source(tmp_path, "18.6", "0" * 64)
    user = OsUser("root", 0, 0)

    with pytest.raises(PlanError, match="make reads some of that otherwise"):
        build(source, Recipe(), tmp_path / name, user, lambda *_: None)

    assert not list(tmp_path.iterdir())
