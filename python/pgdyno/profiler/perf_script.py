"""Reads what `perf script` prints, and folds its stacks.

Asked for are the fields pid, tid, time, period, ip, sym and dso. A sample is a line such as
`  812/812   5678.123456789:   10101010 cpu-clock:pppH:` and then its stack, the innermost function
first, a line each: `  7f3a1c2b exec_simple_query (/usr/lib/postgresql/18/bin/postgres)`; an empty
line ends it. Source: perf-script(1), and the saved output in the tests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pgdyno.model.profile import KERNEL, UNKNOWN, Quality, Stacks
from pgdyno.profiler.kernel_symbols import KernelSymbols, is_kernel

FIELDS = "pid,tid,time,period,ip,sym,dso"
_HEAD = re.compile(r"^\s*(-?\d+)/(-?\d+)\s+(\d+)\.(\d{6,9}):\s+(\d+)\b")
_FRAME = re.compile(r"^\s+([0-9a-f]+) (.*) \((.*)\)$")
_LOST = re.compile(r"PERF_RECORD_LOST(?:_SAMPLES)?\b.*?\blost (\d+)")
_VARIANT = re.compile(r"(\.(isra|constprop|part|cold|lto_priv|localalias|llvm)(\.\d+)*)+$")
_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
_BEGINNINGS = re.compile(
    r"_start|main|__libc_start_\w+|_?_?clone3?|start_thread|thread_start|ret_from_fork\w*"
)
_FRAMES_MAX = 256
_ADDRESS_MAX = 0xFFFF_FFFF_FFFF_F000
_UNNAMED_KEPT = 8


@dataclass(frozen=True, slots=True)
class Frame:
    """A function on a stack."""

    name: str
    module: str  # file name of the program or library; KERNEL


@dataclass(frozen=True, slots=True)
class Sample:
    """A process met on a CPU."""

    pid: int
    monotonic_ns: int
    period_ns: int
    frames: tuple[Frame, ...]  # the innermost first


@dataclass(slots=True)
class Script:
    """What was read of a profile, besides its samples."""

    lost: int = 0
    not_understood: int = 0  # lines


def read_samples(lines: Iterable[str], script: Script, kernel: KernelSymbols) -> Iterator[Sample]:
    """The samples of a profile.

    Args:
        lines: That perf printed.
        script: Gets what else is told.
        kernel: Names of the kernel's functions, for those that perf does not know.
    """
    head: tuple[int, int, int] | None = None
    frames: list[Frame] = []
    for line in lines:
        if match := _FRAME.match(line):
            address = int(match[1], 16)
            if head is None:
                script.not_understood += 1
            elif len(frames) < _FRAMES_MAX and not _is_mark(address):
                frames.append(_frame(address, match[2], match[3], kernel))
            continue
        if head is not None:
            yield Sample(*head, tuple(frames))
            head, frames = None, []
        if match := _HEAD.match(line):
            at_ns = int(match[3]) * 1_000_000_000 + int(match[4].ljust(9, "0"))
            head = int(match[1]), at_ns, int(match[5])
        elif match := _LOST.search(line):
            script.lost += int(match[1])
        elif line.strip():
            script.not_understood += 1
    if head is not None:
        yield Sample(*head, tuple(frames))


def _is_mark(address: int) -> bool:
    """Whether it is no address: unwinders end a thread's stack with -1, the kernel marks contexts.

    Source: enum perf_callchain_context of linux/perf_event.h.
    """
    return address > _ADDRESS_MAX


def _frame(address: int, symbol: str, where: str, kernel: KernelSymbols) -> Frame:
    if is_kernel(address) or where.startswith("[kernel"):
        return Frame(clean(kernel.name(address) if symbol == UNKNOWN else symbol), KERNEL)
    return Frame(clean(symbol), _module(where))


def _module(where: str) -> str:
    """A library by its file name alone: folders differ between installations and runs."""
    if where.startswith("["):
        return where
    return PurePosixPath(where.removesuffix(" (deleted)")).name or where


def clean(symbol: str) -> str:
    """A function's name without what compilers add to it, so that two builds can be compared."""
    return _RUST_HASH.sub("", _VARIANT.sub("", symbol)) or symbol


class Folded:
    """Stacks folded into a tree, counted by seconds."""

    def __init__(self, seconds: int) -> None:
        self._functions: dict[tuple[str, str], int] = {}
        self._nodes: dict[tuple[int, int], int] = {}
        self._seconds: list[Counter[int]] = [Counter() for _ in range(seconds)]

    @property
    def length(self) -> int:
        """Its seconds."""
        return len(self._seconds)

    def add(self, second: int, stack: Iterable[tuple[str, str]], count: int = 1) -> None:
        """Count a stack, the outermost function (a role) first, as functions and modules."""
        node = -1
        for function in stack:
            name = self._functions.setdefault(function, len(self._functions))
            node = self._nodes.setdefault((node, name), len(self._nodes))
        if node >= 0:
            self._seconds[second][node] += count

    def stacks(self, hz: float) -> Stacks:
        """All that was counted."""
        return Stacks(
            hz=hz,
            functions=tuple(self._functions),
            parents=tuple(parent for parent, _ in self._nodes),
            names=tuple(name for _, name in self._nodes),
            seconds=tuple(tuple(sorted(one.items())) for one in self._seconds),
        )


@dataclass(slots=True)
class Account:
    """Counts how much of some processes' samples can be told by name."""

    who: str
    samples: int = 0
    frames: int = 0
    user_stacks: int = 0
    user_stacks_whole: int = 0
    unnamed: Counter[str] = field(default_factory=Counter)

    def add(self, sample: Sample) -> None:
        """Count a sample."""
        self.samples += 1
        self.frames += len(sample.frames)
        self.unnamed.update(one.module for one in sample.frames if one.name == UNKNOWN)
        if any(one.module != KERNEL for one in sample.frames):
            self.user_stacks += 1
            self.user_stacks_whole += bool(_BEGINNINGS.fullmatch(sample.frames[-1].name))

    def quality(self, lost: int, cpu_s: float | None = None) -> Quality:
        """The account, with how many samples were lost."""
        return Quality(
            self.who, self.samples, lost, self.frames, self.frames - self.unnamed.total(),
            self.user_stacks, self.user_stacks_whole,
            tuple(self.unnamed.most_common(_UNNAMED_KEPT)), cpu_s,
        )  # fmt: skip


def fold(
    samples: Iterable[Sample],
    into: Folded,
    account: Account,
    begin_ns: int,
    root: Callable[[int], str | None],
) -> None:
    """Fold the samples of a window.

    Args:
        samples: All of a recording.
        into: Gets those of its whole seconds.
        account: Gets the same.
        begin_ns: When the window begins, on the clock of the samples.
        root: The role of a process by its number; None: it is left out.
    """
    for sample in samples:
        second = (sample.monotonic_ns - begin_ns) // 1_000_000_000
        role = root(sample.pid)
        if role is None or not 0 <= second < into.length:
            continue
        account.add(sample)
        outward = [(one.name, one.module) for one in reversed(sample.frames)]
        into.add(second, [(role, ""), *outward])
