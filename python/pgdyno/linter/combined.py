"""What is the matter with settings together: the rules of the catalogue, order, and arithmetic."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pgdyno.catalog import knobs
from pgdyno.catalog.lint import Condition, Rule, rules
from pgdyno.linter.finding import Finding, Severity
from pgdyno.linter.merged import MergedSettings
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import plural

CACHE_MOST = 0.75  # of the memory
HUGE_MOST = 0.9
FREE_MOST = 0.05
SPARE_HUGE = 1.15  # huge pages beyond the cache: shared memory is somewhat more than the cache
TCP_MOST = 0.5
PAGE_BYTES = 4096  # of x86 and most others
LARGE = (6, 12)  # the first kernel with file system blocks beyond a page
NR_OPEN = 1_048_576  # the kernel's default


def from_rules(merged: MergedSettings) -> Iterator[Finding]:
    """The rules that hold."""
    for name, rule in rules().items():
        if rule.until is not None and merged.system.postgres > rule.until:
            continue
        at = next((merged.named[one] for one in rule.when if one in merged.named), None)
        if at is not None and all(
            _holds(merged, setting, condition) for setting, condition in rule.when.items()
        ):
            yield Finding(at, Severity(rule.severity), _filled_in(rule, merged), rule.hint, name)


def _filled_in(rule: Rule, merged: MergedSettings) -> str:
    return re.sub(r"\{([^{}]+)\}", lambda match: merged.shown(match[1]), rule.text)


def _holds(merged: MergedSettings, name: str, condition: Condition) -> bool:
    if condition.named and name not in merged.named:
        return False
    word = merged.word(name)
    if word is None:
        return False
    if (
        (condition.any_of and word not in condition.any_of)
        or word in condition.none_of
        or (condition.matches is not None and not re.fullmatch(condition.matches, word))
    ):
        return False
    return _within(merged, name, condition)


def _within(merged: MergedSettings, name: str, condition: Condition) -> bool:
    for bound, sign in ((condition.above, 1), (condition.below, -1)):
        if bound is None:
            continue
        limit = merged.number(bound[1:]) if bound.startswith("@") else merged.number_of(name, bound)
        value = merged.number(name)
        if value is None or limit is None or sign * (value - limit) <= 0:
            return False
    return True


def from_order(merged: MergedSettings) -> Iterator[Finding]:
    """Settings that exceed what they must not."""
    for name, knob in knobs().items():
        for other in knob.at_most:
            value, bound = merged.number(name), merged.number(other)
            at = merged.named.get(name) or merged.named.get(other)
            if at is not None and value is not None and bound is not None and value > bound:
                text = f"{name} = {merged.shown(name)} is more than {other} = {merged.shown(other)}"
                yield Finding(at, Severity.CONTRADICTORY, text, rule="at-most")


def from_arithmetic(merged: MergedSettings) -> Iterator[Finding]:
    """Sizes that do not fit."""
    yield from _cache(merged)
    yield from _huge_pages(merged)
    yield from _work_memory(merged)
    yield from _kept_free(merged)
    yield from _files(merged)
    yield from _tcp_memory(merged)
    yield from _block(merged)


def _cache(merged: MergedSettings) -> Iterator[Finding]:
    at, size = merged.named.get("shared_buffers"), merged.number("shared_buffers")
    memory = merged.system.memory_bytes
    if at is not None and size is not None and size > CACHE_MOST * memory:
        text = f"{at.value} of {bytes_text(memory)} of memory leave too little for the rest"
        yield Finding(
            at, Severity.DANGEROUS, text, "Take at most three quarters of it.", "cache-size"
        )


def _pages(count: float) -> str:
    return plural(int(count), "huge page is", "huge pages are")


def _huge_pages(merged: MergedSettings) -> Iterator[Finding]:
    at, count = merged.named.get("vm.nr_hugepages"), merged.number("vm.nr_hugepages")
    if at is None or count is None:
        return
    memory = merged.system.memory_bytes
    size = count * merged.system.huge_page_bytes
    if size > HUGE_MOST * memory:
        text = f"{_pages(count)} {bytes_text(size)}, the machine has {bytes_text(memory)}"
        hint = "`postgres -C shared_memory_size_in_huge_pages` says how many the server needs."
        yield Finding(at, Severity.DANGEROUS, text, hint, "huge-pages-beyond-memory")
    cache = merged.number("shared_buffers")
    if cache is None or "shared_buffers" not in merged.named or merged.word("huge_pages") == "off":
        return
    if size < cache:
        text = (
            f"{_pages(count)} {bytes_text(size)}, less than shared_buffers ="
            f" {merged.shown('shared_buffers')}"
        )
        severity = Severity.CONTRADICTORY
        if merged.word("huge_pages") == "on":
            text += ": the server does not start"
        yield Finding(at, severity, text, rule="huge-pages-too-few")
    elif size > SPARE_HUGE * cache:
        text = (
            f"{_pages(count)} {bytes_text(size)}, shared_buffers ="
            f" {merged.shown('shared_buffers')}: {bytes_text(size - cache)} are lost to all others"
        )
        yield Finding(at, Severity.INEFFECTIVE, text, rule="huge-pages-too-many")


def _work_memory(merged: MergedSettings) -> Iterator[Finding]:
    at, work = merged.named.get("work_mem"), merged.number("work_mem")
    sessions, cache = merged.number("max_connections"), merged.number("shared_buffers")
    if at is None or work is None or sessions is None or cache is None:
        return
    huge = (merged.number("vm.nr_hugepages") or 0) * merged.system.huge_page_bytes
    # Huge pages are kept from all others, also those that the cache leaves over.
    needed, memory = work * sessions + max(cache, huge), merged.system.memory_bytes
    if needed > memory:
        kept = "huge pages" if huge > cache else "cache"
        if cache > memory and "shared_buffers" in merged.named:
            at = merged.named["shared_buffers"]
        text = (
            f"{merged.shown('work_mem')} for each of {sessions:.0f} sessions and the {kept} are"
            f" {bytes_text(needed)}, the machine has {bytes_text(memory)}"
        )
        hint = "A query may take it several times. Set it for the sessions that need it."
        yield Finding(at, Severity.DANGEROUS, text, hint, "work-memory-beyond-memory")


def _kept_free(merged: MergedSettings) -> Iterator[Finding]:
    at, kept = merged.named.get("vm.min_free_kbytes"), merged.number("vm.min_free_kbytes")
    memory = merged.system.memory_bytes
    if at is not None and kept is not None and kept * 1024 > FREE_MOST * memory:
        text = f"{bytes_text(kept * 1024)} of {bytes_text(memory)} are kept from use"
        hint = "vm.watermark_scale_factor is the finer tool."
        yield Finding(at, Severity.DANGEROUS, text, hint, "too-much-kept-free")


def _files(merged: MergedSettings) -> Iterator[Finding]:
    at, files = merged.named.get("nofile"), merged.number("nofile")
    limit = merged.number("fs.nr_open") or NR_OPEN
    if at is not None and files is not None and files > limit:
        text = f"{at.value} is more than fs.nr_open = {limit:.0f}: nobody can log in any more"
        yield Finding(at, Severity.CONTRADICTORY, text, rule="files-beyond-kernel")


def _tcp_memory(merged: MergedSettings) -> Iterator[Finding]:
    at = merged.named.get("net.ipv4.tcp_mem")
    pages = at.value.split() if at else []
    if at is None or not pages or not pages[-1].isdigit():
        return
    most, memory = int(pages[-1]) * PAGE_BYTES, merged.system.memory_bytes
    if most > TCP_MOST * memory:
        text = (
            f"is counted in pages: {pages[-1]} are {bytes_text(most)},"
            f" the machine has {bytes_text(memory)}"
        )
        hint = "Leave it out: the kernel computes it."
        yield Finding(at, Severity.INEFFECTIVE, text, hint, "sockets-beyond-memory")


def _block(merged: MergedSettings) -> Iterator[Finding]:
    at, size = merged.named.get("mkfs.xfs -b size"), merged.number("mkfs.xfs -b size")
    if at is not None and size is not None and size > PAGE_BYTES and merged.system.kernel < LARGE:
        text = f"{merged.system.shown('kernel')} mounts blocks of {PAGE_BYTES} bytes at most"
        hint = f"Larger ones since Linux {'.'.join(map(str, LARGE))}."
        yield Finding(at, Severity.CONTRADICTORY, text, hint, "blocks-beyond-kernel")
