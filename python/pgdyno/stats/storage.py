"""What a measured floor means: knees, who caps the rate, and claims that the numbers contradict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.model.floor import (
    PATTERNS,
    Clock,
    Floor,
    GridPoint,
    Pattern,
    Probed,
    SyncRate,
    Together,
)
from pgdyno.model.floor_figures import DEFAULT_METHOD, NEAR_PEAK, Cap, Doubt, IopsKnee, Times
from pgdyno.model.units import ns_text
from pgdyno.model.wording import CHOSEN, listed, plural

ADDS_UP = 0.85  # of the sum of the paths alone
_CPU_FULL = 0.9
_FLASH_NS = 100_000  # writing to flash takes longer; a protected cache does not
_TURN_NS = 2_000_000  # half a turn at 15,000 a minute
_NOTHING_FLUSHED = 3  # times the write alone
_CLOCK_NS = 100
OTHERS_SHARE = 0.25
"""Of all CPUs, that others may use before a warning says so. Chosen: what the kernel does for our
own probes counts as others', too, so that a lower one would warn on machines that are idle."""
_NO_BARRIER = ("nobarrier", "barrier=0", "nobarriers")


def iops_knee(floor: Floor, pattern: Pattern) -> IopsKnee:
    """The knee of a pattern."""
    best = best_points(floor, pattern)
    peak = max(best, key=lambda point: point.per_s)
    knee = next(point for point in best if point.per_s >= NEAR_PEAK * peak.per_s)
    return IopsKnee(peak, knee, best[-1].outstanding >= 2 * knee.outstanding)


def best_points(floor: Floor, pattern: Pattern) -> list[GridPoint]:
    """The fastest way to have so many requests under way, for each number of them."""
    points = [point for point in floor.grid if point.pattern == pattern]
    loads = sorted({point.outstanding for point in points})
    return [
        max((p for p in points if p.outstanding == load), key=lambda p: p.per_s) for load in loads
    ]


def flush_rate(floor: Floor) -> SyncRate:
    """PostgreSQL's default way to flush one page, as the run of all methods has it."""
    found = floor.sync("one-write", DEFAULT_METHOD)
    assert found is not None, "probe.sync refuses an output without it"
    return found


def best_sync(floor: Floor, test: str) -> SyncRate:
    """The fastest method of a test."""
    return max((one for one in floor.syncs if one.test == test), key=lambda one: one.per_s or 0)


def cap(floor: Floor, probed: Probed, repeated: Times | None) -> Cap:
    """Whether host or device caps a path's random reads.

    Alone a flat rate is a cap, but not whose. Paths on other devices tell: what does not add up is
    the host's.

    Args:
        floor: The path, whose grid has one window of each load.
        probed: All of them.
        repeated: Its heaviest load of random reads in rounds; None: it was not in rounds.
    """
    found = iops_knee(floor, "random read")
    at = f"{found.knee.per_s:,.0f} random reads/s with {found.knee.outstanding} under way"
    peaks = [iops_knee(floor, pattern).peak.per_s for pattern in PATTERNS]
    if (open_ended := _without_cap(floor, found, at, repeated)) is not None:
        return open_ended
    if min(peaks) >= NEAR_PEAK * max(peaks):
        at += " (random and sequential, reads and writes alike: requests are counted)"
    peak = found.peak
    if peak.cpu_share >= _CPU_FULL or peak.cpu_share * peak.jobs >= _CPU_FULL * probed.cpus:
        return Cap(
            "processor",
            f"{at}, no more beyond; its {plural(peak.jobs, 'job')} used {peak.cpu_share:.0%} of a"
            f" CPU each, and the host has {probed.cpus}",
        )
    if floor.claims.in_memory:
        return Cap("host", f"{at}, no more beyond; its files lie in memory")
    together = probed.together
    if together is None or floor.path not in {share.path for share in together.shares}:
        return Cap(
            "host or device", f"{at}, no more beyond; a second device would show whose cap it is"
        )
    if shared := shared_disks([one for one in probed.floors if one.path in _paths(together)]):
        at += f", no more beyond; the paths share {listed(shared)}, so that reading them together"
        return Cap("host or device", f"{at} does not tell whose cap it is")
    alone = sum(share.alone_per_s for share in together.shares)
    both = sum(share.together_per_s for share in together.shares)
    paths = plural(len(together.shares), "path")
    each = together.depth * together.jobs
    sums = (
        f"with {each} under way on each, {paths} together reach {both:,.0f}/s of {alone:,.0f}/s"
        " alone, added up"
    )
    return Cap("device" if both >= ADDS_UP * alone else "host", f"{at}, no more beyond; {sums}")


def _without_cap(floor: Floor, found: IopsKnee, at: str, repeated: Times | None) -> Cap | None:
    """Where the rate is not flat, or is so in the grid alone; None: something caps it.

    One window that something else disturbed is flat, too: rounds that all reach more refute it.
    """
    if not found.flat:
        return Cap("not reached", f"{at}, {_not_flat(floor, found)}")
    if repeated is None or repeated.many.low * NEAR_PEAK <= found.peak.per_s:
        return None
    rounds = f"{repeated.many.low:,.0f} to {repeated.many.high:,.0f}/s"
    return Cap(
        "not known",
        f"{at}, no more beyond in the one window of each load, but every round of the heaviest"
        f" reached more ({rounds}): whether anything caps them is not known",
    )


def _not_flat(floor: Floor, found: IopsKnee) -> str:
    """Why a load shows no cap: what was not tried beyond it."""
    loads = [point.outstanding for point in best_points(floor, "random read")]
    if len(loads) == 1:
        return "the only load tried: whether a larger one reaches more is not known"
    if found.knee.outstanding == loads[-1]:
        return "the largest load tried: still rising"
    return "near the highest rate; no load of twice as many was tried"


def shared_disks(floors: Sequence[Floor]) -> tuple[str, ...]:
    """Whole disks that more than one of these paths lie on, by name."""
    named = [disk for floor in floors for disk in floor.claims.disks]
    return tuple(disk for disk in dict.fromkeys(named) if named.count(disk) > 1)


def _paths(together: Together) -> frozenset[str]:
    return frozenset(share.path for share in together.shares)


def doubts(floor: Floor, flush_ns: float) -> tuple[Doubt, ...]:
    """Claims of a path that its numbers contradict.

    Args:
        floor: The path.
        flush_ns: What a flush of one page takes there, see `flush_figure`.
    """
    return tuple(_doubts(floor, flush_ns))


def clock_doubts(clock: Clock) -> tuple[Doubt, ...]:
    """A clock that is slow to read."""
    if clock.loop_ns <= _CLOCK_NS:
        return ()
    return (
        Doubt(
            "reading the clock is slow",
            f"it takes {clock.loop_ns:.0f} ns, more than {_CLOCK_NS} ns",
            "`pgdyno knobs clocksource` lists faster ones; track_io_timing is costly here.",
        ),
    )


def busy_doubts(probed: Probed) -> tuple[Doubt, ...]:
    """Other programs that kept the CPUs busy while paths were probed."""
    used = [one.others_cpus for one in probed.rounds if one.others_cpus is not None]
    if not used or max(used) <= OTHERS_SHARE * probed.cpus:
        return ()
    return (
        Doubt(
            "other programs kept the machine busy while this was measured",
            f"they used up to {max(used):.1f} of {plural(probed.cpus, 'CPU')} in a round, and this"
            f" warning comes above {OTHERS_SHARE:.0%} of all, {CHOSEN}",
            "Probes had to wait for a CPU, and perhaps for the storage: measure again when the"
            " machine is idle.",
        ),
    )


def _doubts(floor: Floor, flush_ns: float) -> Iterator[Doubt]:
    claims = floor.claims
    flush_text = ns_text(flush_ns)
    if claims.in_memory:
        keeps = f"{claims.file_system} keeps its files in memory"
        yield Doubt(
            f"{claims.backing_file} lies in memory" if claims.backed_by_memory else keeps,
            f"a flush takes {flush_text}",
            "These numbers say nothing of a disk.",
        )
        return
    if off := [option for option in claims.options.split(",") if option in _NO_BARRIER]:
        yield Doubt(
            f"the file system is mounted with {off[0]}",
            f"a flush takes {flush_text}",
            "Commits may be lost with power: this is rung D5.",
        )
    unsynced = floor.sync("unsynced", "write")
    if unsynced and unsynced.ns and flush_ns < _NOTHING_FLUSHED * unsynced.ns:
        yield Doubt(
            "nothing seems to be flushed",
            f"a write with fdatasync takes {flush_text}, a write without {ns_text(unsynced.ns)}",
            "A power cut loses commits.",
        )
    elif claims.rotational and flush_ns < _TURN_NS:
        yield Doubt(
            "the disk claims to rotate, and flushes faster than it could turn",
            f"on {claims.block_device} a flush takes {flush_text}, half a turn"
            f" {ns_text(_TURN_NS)} or more",
            "A cache answers. Of a virtual disk the claim may be a default: ask who runs the host"
            " whether flushes reach stable storage.",
        )
    elif claims.write_cache == "write back" and flush_ns < _FLASH_NS:
        yield Doubt(
            "the disk claims a volatile cache (write back), and flushes faster than flash",
            f"on {claims.block_device} a flush takes {flush_text}, writing to flash"
            f" {ns_text(_FLASH_NS)} or more",
            "Either the cache survives a power cut, or flushes are not carried out: ask the maker,"
            " or whoever runs the host.",
        )
