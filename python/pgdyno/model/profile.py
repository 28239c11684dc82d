"""A profile: where processes spent CPU time, and in what they waited, for some seconds under load.

Stacks are folded into a tree whose roots are roles (`backend`, `checkpointer`, `driver`, ...), and
counted by whole seconds, so that what differs between two profiles can be told from chance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

PROFILE_WARMUP_S = 3.0
"""Of the load that is driven for a profile: sessions are opened, and perf begins to look on."""
Unwinding = Literal["dwarf", "fp"]

UNKNOWN = "[unknown]"
"""What a function without a symbol is called; its module is told."""
KERNEL = "[kernel]"
"""The module of the kernel's functions."""
SERVER = "server"
DRIVER = "driver"
KERNEL_THREADS = "kernel_threads"
"""Roots that are no role of a PostgreSQL process: the load generator, and the kernel's own."""


@dataclass(frozen=True, slots=True)
class Stacks:
    """Stacks as a tree, and how often each was met.

    A node is a function as it was called by its parent; `nodes` come after their parents.
    """

    hz: float  # samples a second, of each CPU or (waiting) of each process
    functions: tuple[tuple[str, str], ...]  # name, module
    parents: tuple[int, ...]  # of each node; -1: it is a role
    names: tuple[int, ...]  # of each node: its function
    seconds: tuple[tuple[tuple[int, int], ...], ...]  # of the window: node on top, times met


@dataclass(frozen=True, slots=True)
class Quality:
    """How much of what was sampled can be told by name."""

    who: str  # server, driver, kernel_threads
    samples: int
    lost: int  # that perf could not keep
    frames: int  # of all stacks
    frames_named: int
    user_stacks: int  # samples taken within a program, or in the kernel for it
    user_stacks_whole: int  # of these: unwound to where a process or thread begins
    unnamed: tuple[tuple[str, int], ...]  # module, frames without a symbol; the most first
    cpu_s: float | None = None  # what the kernel says that these processes used meanwhile


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that could not be seen, and how it could."""

    fact: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """What one profile window saw, on a load that was driven for it."""

    seconds: int  # whole ones of the window
    transactions: tuple[float, ...]  # that ended in each
    cpu: Stacks | None  # None: perf could not
    waiting: Stacks | None  # processes by state and wait channel; None: that could not be read
    unwinding: Unwinding
    tool: str  # e.g. "perf version 6.1.187"; "": there is none
    quality: tuple[Quality, ...] = ()
    lacks: tuple[Lack, ...] = field(default=())
