"""What is the matter with settings together: the rules of the catalogue, order, and arithmetic."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pgdyno.catalog import knobs
from pgdyno.catalog.lint import Condition, Rule, rules
from pgdyno.linter.finding import Finding, Severity
from pgdyno.linter.merged import World
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


def from_rules(world: World) -> Iterator[Finding]:
    """The rules that hold."""
    for name, rule in rules().items():
        if rule.until is not None and world.system.postgres > rule.until:
            continue
        at = next((world.named[one] for one in rule.when if one in world.named), None)
        if at is not None and all(
            _holds(world, setting, condition) for setting, condition in rule.when.items()
        ):
            yield Finding(at, Severity(rule.severity), _filled_in(rule, world), rule.hint, name)


def _filled_in(rule: Rule, world: World) -> str:
    return re.sub(r"\{([^{}]+)\}", lambda match: world.shown(match[1]), rule.text)


def _holds(world: World, name: str, condition: Condition) -> bool:
    if condition.named and name not in world.named:
        return False
    word = world.word(name)
    if word is None:
        return False
    if (
        (condition.any_of and word not in condition.any_of)
        or word in condition.none_of
        or (condition.matches is not None and not re.fullmatch(condition.matches, word))
    ):
        return False
    return _within(world, name, condition)


def _within(world: World, name: str, condition: Condition) -> bool:
    for bound, sign in ((condition.above, 1), (condition.below, -1)):
        if bound is None:
            continue
        limit = world.number(bound[1:]) if bound.startswith("@") else world.number_of(name, bound)
        value = world.number(name)
        if value is None or limit is None or sign * (value - limit) <= 0:
            return False
    return True


def from_order(world: World) -> Iterator[Finding]:
    """Settings that exceed what they must not."""
    for name, knob in knobs().items():
        for other in knob.at_most:
            value, bound = world.number(name), world.number(other)
            at = world.named.get(name) or world.named.get(other)
            if at is not None and value is not None and bound is not None and value > bound:
                text = f"{name} = {world.shown(name)} is more than {other} = {world.shown(other)}"
                yield Finding(at, Severity.CONTRADICTORY, text, rule="at-most")


def from_arithmetic(world: World) -> Iterator[Finding]:
    """Sizes that do not fit."""
    yield from _cache(world)
    yield from _huge_pages(world)
    yield from _work_memory(world)
    yield from _kept_free(world)
    yield from _files(world)
    yield from _tcp_memory(world)
    yield from _block(world)


def _cache(world: World) -> Iterator[Finding]:
    at, size = world.named.get("shared_buffers"), world.number("shared_buffers")
    memory = world.system.memory_bytes
    if at is not None and size is not None and size > CACHE_MOST * memory:
        text = f"{at.value} of {bytes_text(memory)} of memory leave too little for the rest"
        yield Finding(
            at, Severity.DANGEROUS, text, "Take at most three quarters of it.", "cache-size"
        )


def _pages(count: float) -> str:
    return plural(int(count), "huge page is", "huge pages are")


def _huge_pages(world: World) -> Iterator[Finding]:
    at, count = world.named.get("vm.nr_hugepages"), world.number("vm.nr_hugepages")
    if at is None or count is None:
        return
    memory = world.system.memory_bytes
    size = count * world.system.huge_page_bytes
    if size > HUGE_MOST * memory:
        text = f"{_pages(count)} {bytes_text(size)}, the machine has {bytes_text(memory)}"
        hint = "`postgres -C shared_memory_size_in_huge_pages` says how many the server needs."
        yield Finding(at, Severity.DANGEROUS, text, hint, "huge-pages-beyond-memory")
    cache = world.number("shared_buffers")
    if cache is None or "shared_buffers" not in world.named or world.word("huge_pages") == "off":
        return
    if size < cache:
        text = (
            f"{_pages(count)} {bytes_text(size)}, less than shared_buffers ="
            f" {world.shown('shared_buffers')}"
        )
        severity = Severity.CONTRADICTORY
        if world.word("huge_pages") == "on":
            text += ": the server does not start"
        yield Finding(at, severity, text, rule="huge-pages-too-few")
    elif size > SPARE_HUGE * cache:
        text = (
            f"{_pages(count)} {bytes_text(size)}, shared_buffers ="
            f" {world.shown('shared_buffers')}: {bytes_text(size - cache)} are lost to all others"
        )
        yield Finding(at, Severity.INEFFECTIVE, text, rule="huge-pages-too-many")


def _work_memory(world: World) -> Iterator[Finding]:
    at, work = world.named.get("work_mem"), world.number("work_mem")
    sessions, cache = world.number("max_connections"), world.number("shared_buffers")
    if at is None or work is None or sessions is None or cache is None:
        return
    huge = (world.number("vm.nr_hugepages") or 0) * world.system.huge_page_bytes
    # Huge pages are kept from all others, also those that the cache leaves over.
    needed, memory = work * sessions + max(cache, huge), world.system.memory_bytes
    if needed > memory:
        kept = "huge pages" if huge > cache else "cache"
        text = (
            f"{at.value} for each of {sessions:.0f} sessions and the {kept} are"
            f" {bytes_text(needed)}, the machine has {bytes_text(memory)}"
        )
        hint = "A query may take it several times. Set it for the sessions that need it."
        yield Finding(at, Severity.DANGEROUS, text, hint, "work-memory-beyond-memory")


def _kept_free(world: World) -> Iterator[Finding]:
    at, kept = world.named.get("vm.min_free_kbytes"), world.number("vm.min_free_kbytes")
    memory = world.system.memory_bytes
    if at is not None and kept is not None and kept * 1024 > FREE_MOST * memory:
        text = f"{bytes_text(kept * 1024)} of {bytes_text(memory)} are kept from use"
        hint = "vm.watermark_scale_factor is the finer tool."
        yield Finding(at, Severity.DANGEROUS, text, hint, "too-much-kept-free")


def _files(world: World) -> Iterator[Finding]:
    at, files = world.named.get("nofile"), world.number("nofile")
    limit = world.number("fs.nr_open") or NR_OPEN
    if at is not None and files is not None and files > limit:
        text = f"{at.value} is more than fs.nr_open = {limit:.0f}: nobody can log in any more"
        yield Finding(at, Severity.CONTRADICTORY, text, rule="files-beyond-kernel")


def _tcp_memory(world: World) -> Iterator[Finding]:
    at = world.named.get("net.ipv4.tcp_mem")
    pages = at.value.split() if at else []
    if at is None or not pages or not pages[-1].isdigit():
        return
    most, memory = int(pages[-1]) * PAGE_BYTES, world.system.memory_bytes
    if most > TCP_MOST * memory:
        text = (
            f"is counted in pages: {pages[-1]} are {bytes_text(most)},"
            f" the machine has {bytes_text(memory)}"
        )
        hint = "Leave it out: the kernel computes it."
        yield Finding(at, Severity.INEFFECTIVE, text, hint, "sockets-beyond-memory")


def _block(world: World) -> Iterator[Finding]:
    at, size = world.named.get("mkfs.xfs -b size"), world.number("mkfs.xfs -b size")
    if at is not None and size is not None and size > PAGE_BYTES and world.system.kernel < LARGE:
        text = f"{world.system.shown('kernel')} mounts blocks of {PAGE_BYTES} bytes at most"
        hint = f"Larger ones since Linux {'.'.join(map(str, LARGE))}."
        yield Finding(at, Severity.CONTRADICTORY, text, hint, "blocks-beyond-kernel")
