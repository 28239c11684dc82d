"""Interrupts that CPUs send one another (IPIs), from /proc/interrupts.

Who wakes a process that sleeps on another CPU interrupts that CPU. On a host that driver and server
fill together, how often that happens decides a good part of what a round trip costs both: the
scheduler's placement of sessions, which neither of them chooses.

Source: proc_interrupts(5); Linux, arch/x86/kernel/irq.c and arch/arm64/kernel/smp.c, which name
these lines alike. Interrupts that flush TLBs are not among them. CPUs that are off are not listed:
what they counted would come and go with them, so that there are no samples while others are on than
were at first.
"""

from __future__ import annotations

from pathlib import Path

from pgdyno.sample.kernel_file import kernel_file
from pgdyno.sample.sampler import Column, Row, Sampler, Subject

_KINDS = ("Rescheduling interrupts", "Function call interrupts")
_PATH = Path("/proc/interrupts")
_COLUMN = Column("host.ipis", "1")


def parse(text: str) -> int | None:
    """IPIs since boot that wake or call, all CPUs together; None where the kernel lists none."""
    found = [_sum(line) for line in text.splitlines() if line.rstrip().endswith(_KINDS)]
    return sum(found) if found else None


def _sum(line: str) -> int:
    """The counts between the line's label and its words, one for each CPU."""
    total = 0
    for word in line.partition(":")[2].split():
        if not word.isdigit():
            break
        total += int(word)
    return total


def _cpus(text: str) -> str:
    """The CPUs that are on."""
    return text.partition("\n")[0]


def sampler(_subject: Subject, path: Path = _PATH) -> Sampler | None:
    """IPIs of this host; None where it has one CPU, or does not tell."""
    file = kernel_file(path)
    if file is None or parse(first := file.text()) is None:
        return None
    cpus = _cpus(first)

    def take() -> Row:
        if _cpus(text := file.text()) != cpus:
            return {}
        count = parse(text)
        assert count is not None, "the lines of IPIs vanished"
        return {_COLUMN.name: count}

    return Sampler("interrupts", (_COLUMN,), take)
