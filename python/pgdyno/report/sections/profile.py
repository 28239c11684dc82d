"""Where the CPU time of a transaction goes: roles and functions as text, then the graphs."""

from __future__ import annotations

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.profile_facts import Heavy, Named, ProfileFacts, Share, Tree
from pgdyno.model.profile import DRIVER, KERNEL, KERNEL_THREADS, SERVER, UNKNOWN, Lack
from pgdyno.model.units import count_text
from pgdyno.model.wording import listed
from pgdyno.report.document import Block, Cell, Column, Flames, Section, Table, Text, columns
from pgdyno.report.flame import role_text

_WHO = {SERVER: "server", DRIVER: "load generator", KERNEL_THREADS: "kernel threads"}
_CHANNELS = {  # kernel functions that processes sleep in, by how their names begin
    "do_epoll_wait": "a client, or work", "ep_poll": "a client, or work",
    "futex_": "a lock", "do_semtimedop": "a lock",
    "io_schedule": "storage", "folio_wait": "storage", "wait_on_page": "storage",
    "blk_": "storage", "submit_bio_wait": "storage", "rq_qos_wait": "storage",
    "jbd2_": "the journal of ext4", "xlog_": "the journal of XFS", "xfs_": "XFS",
    "balance_dirty_pages": "written pages, held back by the kernel",
    "hrtimer_nanosleep": "a time", "do_nanosleep": "a time", "do_select": "a time",
    "pipe_": "a pipe", "unix_stream": "a socket", "sk_wait": "a socket",
}  # fmt: skip
_DEBUG = (
    "Programs and libraries without symbols show as `[unknown]`. Debian has those of its libraries"
    " in packages such as `libc6-dbg`, those of its PostgreSQL in `postgresql-15-dbgsym` of the"
    " archive debian-debug; a build of `pgdyno build` keeps its own."
)
_DWARF = (
    "The server's program keeps no pointers to its frames, so that perf copied pieces of the stacks"
    " and followed them afterwards: deeper ones are cut. A build of `pgdyno build --flags"
    " -fno-omit-frame-pointer` is profiled at less cost, with whole stacks."
)
_LETS_INTERRUPT = (
    "The software clock interrupts nobody who has held interrupts off: such time shows in the"
    " function that allows them again, {found}, and belongs to those that called it."
)
_CHANCE = (
    "One sample stands for {samples}. Chance moves the time of a function that was met four times"
    " by a half, of one that was met a hundred times by a tenth; the flame graph tells the 99%"
    " interval of each frame."
)
_LETTERS = ("_raw_spin_unlock_irq", "finish_task_switch", "local_irq_enable", "irqentry_exit")
_WHOLE_LEAST = 0.98
_NAMED_LEAST = 0.98
_CALLED_LEAST = 1.05


def section(facts: Facts) -> Section | None:
    """Nothing where no profile was taken."""
    found = facts.profiles
    if found is None:
        return None
    blocks: list[Block] = [_first(found)]
    if found.cpu is not None:
        blocks += [
            _roles(found),
            _heavy(found),
            *_by_chance(found),
            *_lets_interrupt(found),
            *_changed(found),
            Flames("cpu", "Flame graph of CPU time", _CAPTION, found.cpu),
        ]
    if found.waiting is not None:
        blocks += [
            _waits(found),
            Flames("waiting", "What processes waited in", _WAIT_CAPTION, found.waiting),
        ]
    blocks += [*_quality(found), *map(_lack, found.lacks)]
    return Section("profile", "Where the CPU time goes", tuple(blocks))


_CAPTION = (
    "Width is CPU time of a transaction; below a function stands what it called. Orange is the"
    " program, yellow a library, blue the kernel. Against another stage, red is more, green is"
    " less, grey may be chance; hatched is what only one of them has. Choose a frame to enlarge it."
)
_WAIT_CAPTION = (
    "Width is the mean number of processes of the server: by role, by state, and by the function of"
    " the kernel in which they slept."
)


def _lack(lack: Lack) -> Text:
    return Text(f"{lack.fact} {lack.remedy}".strip(), "warn")


def _first(found: ProfileFacts) -> Text:
    """What was done, and what most of it went to, in sentences."""
    if not found.stages:
        return Text("A profile was asked for, and nothing could be seen.", "warn")
    each = dict.fromkeys(f"{one.seconds / one.profiles:g} s" for one in found.stages)
    text = (
        f"After its window, each trial's load was driven once more, and watched for"
        f" {listed(list(each), 'or')}."
        " Nothing measured elsewhere in this report lies in that time."
    )
    if found.cpu is None:
        return Text(text)
    whole = found.cpu.branches[0]
    is_seen = any(module == KERNEL for _, module in found.cpu.functions)
    kernel = (
        f", {_percent(_kernel_share(found.cpu, 0))} of them in the kernel"
        if is_seen
        else " outside of the kernel, which was not seen"
    )
    text += f" In {whole.stage}, a transaction took {_value(whole.whole)} µs of CPU time{kernel}"
    heaviest = max(found.heavy, key=lambda one: one.shares[0].own, default=None)
    if heaviest is None:
        return Text(f"{text}.")
    share = heaviest.shares[0].own / whole.whole if whole.whole else 0.0
    return Text(f"{text}; the heaviest function was {_named(heaviest)} with {_percent(share)}.")


def _kernel_share(tree: Tree, stage: int) -> float:
    """The share of time below the kernel's entry, on any stack."""
    branch = tree.branches[stage]
    in_kernel = 0.0
    for node, (parent, name) in enumerate(zip(tree.parents, tree.names, strict=True)):
        above = tree.functions[tree.names[parent]][1] if parent >= 0 else ""
        if tree.functions[name][1] == KERNEL != above:
            in_kernel += branch.values[node]
    return in_kernel / branch.whole if branch.whole else 0.0


def _named(one: Heavy) -> str:
    return f"`{one.name}`" + (f" of {one.module}" if one.name == UNKNOWN else "")


def _roles(found: ProfileFacts) -> Table:
    assert found.cpu is not None
    wholes = [branch.whole for branch in found.cpu.branches]
    rows = tuple(
        (
            Cell(role_text(role.role)),
            *(_cell(v, v / w if w else 0.0) for v, w in zip(role.values, wholes, strict=True)),
        )
        for role in found.cpu_roles
    )
    caption = "CPU time of a transaction by role, µs, and the share of all that was seen."
    return Table(caption, columns("role", *(branch.stage for branch in found.cpu.branches)), rows)


def _heavy(found: ProfileFacts) -> Table:
    assert found.cpu is not None
    rows = tuple(
        (
            _function(one.name, one.module, one.role),
            *(
                Cell(f"{_value(share.own)} · {_percent(share.own_share)}", note=_called(share))
                for share in one.shares
            ),
        )
        for one in found.heavy
    )
    caption = (
        "The heaviest functions of each role: CPU time in the function itself, µs a transaction,"
        " and its share of the role."
    )
    heads = (branch.stage for branch in found.cpu.branches)
    return Table(caption, columns("function", *heads), rows)


def _by_chance(found: ProfileFacts) -> tuple[Text, ...]:
    """How much of a function's time is the luck of being met."""
    told = [f"{_value(one.sample_us)} µs in {one.stage}" for one in found.stages if one.sample_us]
    if not told:
        return ()
    return (Text(_CHANCE.format(samples=listed(told, "and")), "quiet"),)


def _lets_interrupt(found: ProfileFacts) -> tuple[Text, ...]:
    """What heavy functions of the kernel mean that only end a time without interrupts."""
    names = [one.name for one in found.heavy if one.module == KERNEL]
    met = list(dict.fromkeys(f"`{one}`" for one in names if one.startswith(_LETTERS)))
    return (Text(_LETS_INTERRUPT.format(found=listed(met, "or")), "quiet"),) if met else ()


def _called(share: Share) -> str | None:
    """What a function had with those it called, where that is more."""
    if share.total <= share.own * _CALLED_LEAST:
        return None
    return f"{_value(share.total)} with what it called"


def _function(name: str, module: str, role: str) -> Cell:
    where = f"{role_text(role)}, {module}" if module else role_text(role)
    return Cell(name, note=where, code=True)


def _cell(value: float, share: float) -> Cell:
    return Cell(f"{_value(value)} · {_percent(share)}")


def _changed(found: ProfileFacts) -> tuple[Block, ...]:
    compared = [one for one in found.stages if one.profiles]
    if len(compared) < 2:
        return ()
    if not found.changed:
        return (
            Text("No function's CPU time differs between stages by more than chance explains."),
        )
    rows = tuple(
        (
            _function(one.name, one.module, one.role),
            Cell(f"{one.stage} against {one.base}"),
            Cell(_value(one.base_value)),
            Cell(_value(one.value)),
            Cell(
                _signed(one.value - one.base_value),
                "bad" if one.value > one.base_value else "good",
                note=f"{_signed(one.low)} to {_signed(one.high)}",
            ),
        )
        for one in found.changed
    )
    caption = (
        "Functions whose CPU time of a transaction differs between two stages, µs in the function"
        " itself, with the 99% interval of the difference."
    )
    heads = (
        Column("function", align="left"), Column("stages", align="left"),
        Column("before"), Column("after"), Column("difference"),
    )  # fmt: skip
    return (Table(caption, heads, rows),)


def _waits(found: ProfileFacts) -> Table:
    assert found.waiting is not None
    rows = tuple(
        (
            Cell(role_text(one.role)),
            Cell(one.name, note=_meaning(one.name), code=one.module == KERNEL),
            *(Cell(_value(share.own)) for share in one.shares),
        )
        for one in found.waits
    )
    caption = (
        "What the server's processes were at, how many at a time: on a CPU or without one, or"
        " asleep in this function of the kernel."
    )
    heads = (
        Column("role", align="left"), Column("waits in", align="left"),
        *(Column(branch.stage) for branch in found.waiting.branches),
    )  # fmt: skip
    return Table(caption, heads, rows, folded=True)


def _meaning(channel: str) -> str | None:
    """What that mostly means, in a word or two."""
    for begin, meaning in _CHANNELS.items():
        if channel.startswith(begin):
            return f"for {meaning}"
    return None


def _quality(found: ProfileFacts) -> tuple[Block, ...]:
    if not found.named:
        return ()
    rows = tuple(
        (
            Cell(f"{one.stage}, {_WHO.get(one.who, one.who)}"),
            Cell(count_text(one.samples)),
            Cell(count_text(one.lost)),
            Cell(_share(one.frames_named)),
            Cell(_share(one.whole)),
            Cell(_share(one.seen)),
            Cell(_unnamed(one)),
        )
        for one in found.named
    )
    caption = f"How much of the samples can be told by name ({found.tool or 'no perf'})."
    heads = (
        "samples", "lost", ("frames with symbols", "%"), ("whole stacks", "%"),
        ("CPU time seen", "% of what the kernel counts"), "most without symbols",
    )  # fmt: skip
    blocks: list[Block] = [Table(caption, columns("whose", *heads), rows, folded=True)]
    programs = [one for one in found.named if one.who != KERNEL_THREADS]
    if any(one.frames_named is not None and one.frames_named < _NAMED_LEAST for one in programs):
        blocks.append(Text(_DEBUG, "quiet"))
    server = [one.whole for one in programs if one.who == SERVER and one.whole is not None]
    if "dwarf" in found.unwinding and any(whole < _WHOLE_LEAST for whole in server):
        blocks.append(Text(_DWARF, "quiet"))
    return tuple(blocks)


def _unnamed(one: Named) -> str:
    parts = [f"{module} {_percent(share)}" for module, share in one.unnamed]
    return ", ".join(parts) or words.NOTHING


def _share(share: float | None) -> str:
    return words.NOTHING if share is None else f"{share * 100:.1f}"


def _percent(share: float) -> str:
    return f"{share * 100:.1f}%" if share < 0.0995 else f"{share * 100:.0f}%"


def _value(value: float) -> str:
    if value >= 100:
        return count_text(value)
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else '-' if value < 0 else ''}{_value(abs(value))}"
