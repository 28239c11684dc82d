"""Settings in lines of a shell: what a person typed to set a machine up.

Known are the programs whose options stand in the catalogue (`mkfs.xfs -d agcount`), those that
write files of /proc and /sys, and a few with words of their own. Of each line the options that the
catalogue knows are taken; nothing is run, and no variable is looked up.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise

from pgdyno.catalog import file_of, machine_knobs

Setting = tuple[str, str, str]  # scope, name, value
_PROGRAMS = {"mkfs.ext4": "mke2fs", "mkfs.ext3": "mke2fs"}  # one program with several names
_CUT = re.compile(r"\s*(?:&&|\|\||;)\s*")
_ASSIGNED = re.compile(r"[A-Z]+=.*")


def settings(line: str) -> list[Setting]:
    """Those of one line; none where its quotes do not end."""
    try:
        return [
            found
            for part in _CUT.split(line.lstrip("#$ "))
            for found in _of_command(shlex.split(part, comments=True))
        ]
    except ValueError:
        return []


def _of_command(words: list[str]) -> Iterator[Setting]:
    words = [word for word in words if word not in ("sudo", "export", "then", "do")]
    while words and _ASSIGNED.fullmatch(words[0]):
        yield from _variable(words.pop(0))
    if not words:
        return
    program = words[0].rpartition("/")[2]
    program = _PROGRAMS.get(program, program)
    reader = _READERS.get(program)
    yield from reader(words[1:]) if reader else _options(program, words[1:])


def _options(program: str, words: list[str]) -> Iterator[Setting]:
    """Options as the catalogue names them: `PROGRAM OPTION`, or `PROGRAM OPTION PART`."""
    known = _known(program)
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=") if word[:2] == "--" else (word, "", "")
        name = known.get(option)
        if name is None:
            continue
        if name in machine_knobs() and machine_knobs()[name].type == "flag":
            yield "", name, "on"
            continue
        value = value if equals else next(rest, "")
        if name in machine_knobs():
            yield "", name, value
            continue
        for part in value.split(","):  # its parts stand in the catalogue
            head, is_set, setting = part.partition("=")
            absent = head.startswith("^")
            yield "", f"{name} {head.lstrip('^')}", setting if is_set else "off" if absent else "on"


@cache
def _known(program: str) -> dict[str, str]:
    """Options of a program, with the beginning of the knobs' names."""
    found = {}
    for name, knob in machine_knobs().items():
        head, _, option = name.partition(" ")
        if head == program and option.startswith("-"):
            short = option.partition(" ")[0]
            found[short] = f"{program} {short}"
            if knob.option:
                found[knob.option] = f"{program} {short}"
    return found


def _configure(words: list[str]) -> Iterator[Setting]:
    for word in words:
        name, equals, value = word.partition("=")
        if _ASSIGNED.fullmatch(word):
            yield from _variable(word)
        elif name.startswith("--"):
            yield "", name, value if equals else "on"


def _variable(word: str) -> Iterator[Setting]:
    """`CC=` and the flags of `CFLAGS=`; others are no settings."""
    name, _, value = word.partition("=")
    if name == "CC":
        yield "", "CC", value.rpartition("/")[2]
    for flag in value.split() if name == "CFLAGS" else ():
        head, equals, setting = flag.partition("=")
        if flag.startswith("-O"):
            yield "", "-O", flag[2:] or "1"
        else:
            yield "", head, setting if equals else "on"


def _mount(words: list[str]) -> Iterator[Setting]:
    options = dict(pairwise(words))
    for option in options.get("-o", "").split(","):
        name, equals, value = option.partition("=")
        if name:
            yield options.get("-t", ""), name, value if equals else "on"


def _blockdev(words: list[str]) -> Iterator[Setting]:
    if words[:1] == ["--setra"] and len(words) > 1 and words[1].isdigit():
        yield "", "queue/read_ahead_kb", str(int(words[1]) // 2)  # from sectors of 512 bytes


def _echo(words: list[str]) -> Iterator[Setting]:
    """`echo VALUE > FILE`, also by `tee`."""
    match = re.fullmatch(r"(.*?) *(?:>|\| *tee) *(/\S+)", " ".join(words))
    name = _knob_of(match[2]) if match else None
    if match and name:
        yield "", name, match[1]


def _knob_of(path: str) -> str | None:
    if not path.startswith(("/proc/", "/sys/")):
        return None
    for name, knob in machine_knobs().items():
        where = file_of(name, knob)
        if where and re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(where)), path):
            return name
    return None


def _sysctl(words: list[str]) -> Iterator[Setting]:
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            yield "", name.replace("/", "."), " ".join(value.split())


def _ethtool(words: list[str]) -> Iterator[Setting]:
    what = {"-L": "channels", "-C": "coalesce", "-G": "ring", "-K": "offload"}.get(
        words[0] if words else ""
    )
    pairs = words[2:]
    for name, value in zip(pairs[::2], pairs[1::2], strict=False) if what else ():
        yield "", f"{what} {name}", value


def _systemctl(words: list[str]) -> Iterator[Setting]:
    for verb, value in (("enable", "on"), ("start", "on"), ("disable", "off"), ("stop", "off")):
        if words[:1] == [verb]:
            yield from (("", name.removesuffix(".service"), value) for name in words[1:])


_READERS: dict[str, Callable[[list[str]], Iterator[Setting]]] = {
    "configure": _configure,
    "mount": _mount,
    "blockdev": _blockdev,
    "echo": _echo,
    "sysctl": _sysctl,
    "ethtool": _ethtool,
    "systemctl": _systemctl,
}
