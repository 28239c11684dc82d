"""Network by interface with errors and drops; TCP's retransmissions; packets the host dropped.

Of the network namespace of pgdyno. Interfaces that never had a packet are left out; of one that is
taken away, and of another that comes under its name, nothing more is told. Sources:
proc_net_dev(5); Linux, Documentation/networking/snmp_counter.rst; net/core/net-procfs.c. Which
words of TcpExt there are depends on the kernel: those that it lacks have no column. Of packets that
the host dropped the kernel tells by the CPUs that are on: there are no samples while others are
than were at first. `speed_bytes_per_s` is that of the link in one direction, as it was at first: to
ask for it takes a lock of the network. Virtual interfaces mostly have none. Cost: 190 µs beside a
full load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pgdyno.sample.kernel_file import KernelFile, kernel_file
from pgdyno.sample.same_ones import SameOnes
from pgdyno.sample.sampler import Column, Row, Sampler, Subject

_DEV = (  # name, place in the line
    ("rx_bytes", 0), ("rx_packets", 1), ("rx_errors", 2), ("rx_drops", 3),
    ("tx_bytes", 8), ("tx_packets", 9), ("tx_errors", 10), ("tx_drops", 11),
)  # fmt: skip
_KNOWN_BY = ("rx_packets", "tx_packets")
_SPEED = "speed_bytes_per_s"
_MBIT_BYTES = 1_000_000 // 8
_LINKS = Path("/sys/class/net")
_TCP = {
    "RetransSegs": "tcp.retransmits",
    "OutSegs": "tcp.out_segments",
    "InSegs": "tcp.in_segments",
    "InErrs": "tcp.in_errors",
    "OutRsts": "tcp.resets",
    "TCPTimeouts": "tcp.timeouts",
    "TCPLostRetransmit": "tcp.lost_retransmits",
    "ListenOverflows": "tcp.listen_overflows",  # a full queue of sessions to be accepted
    "ListenDrops": "tcp.listen_drops",
    "TCPBacklogDrop": "tcp.backlog_drops",
    "TCPRcvQDrop": "tcp.receive_queue_drops",
}
_PARTS = ("Tcp", "TcpExt")
_CPU = 12  # place of its number in a line of softnet_stat, since 5.10


def parse_dev(text: str) -> dict[str, Row]:
    """Counters of each interface since it came: `rx_bytes`, `rx_drops`, ..."""
    found: dict[str, Row] = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.rpartition(":")
        counts = rest.split()
        found[name.strip()] = {field: int(counts[place]) for field, place in _DEV}
    return found


def parse_tcp(text: str) -> Row:
    """Counters since boot of /proc/net/snmp or netstat: a line of words, then one of numbers."""
    row: Row = {}
    lines = text.splitlines()
    for words, numbers in zip(lines[::2], lines[1::2], strict=True):
        part, _, names = words.partition(":")
        if part not in _PARTS:
            continue
        values = numbers.partition(":")[2].split()
        for name, value in zip(names.split(), values, strict=True):
            if column := _TCP.get(name):
                row[column] = int(value)
    return row


def parse_softnet(text: str) -> Row:
    """Packets that found a CPU's queue full, and polls cut short by their time, all CPUs."""
    fields = [line.split() for line in text.splitlines()]
    return {
        "net.softnet_drops": sum(int(one[1], 16) for one in fields),
        "net.softnet_squeezed": sum(int(one[2], 16) for one in fields),
    }


def cpus_of_softnet(text: str) -> list[str]:
    """Which CPUs it tells of; before 5.10, how many."""
    lines = (line.split() for line in text.splitlines())
    return [line[_CPU] if len(line) > _CPU else "" for line in lines]


def _softnet(file: KernelFile) -> Callable[[], Row]:
    cpus = cpus_of_softnet(file.text())

    def take() -> Row:
        text = file.text()
        return parse_softnet(text) if cpus_of_softnet(text) == cpus else {}

    return take


def _tcp(file: KernelFile) -> Callable[[], Row]:
    return lambda: parse_tcp(file.text())


def speed_of(link: Path) -> int | None:
    """Bytes a second in one direction; None: the interface does not tell, or is down."""
    if (file := kernel_file(link / "speed")) is None:
        return None
    try:
        mbit_s = int(file.line())
    except (OSError, ValueError):
        return None
    finally:
        file.close()
    return mbit_s * _MBIT_BYTES if mbit_s > 0 else None


def sampler(
    _subject: Subject, folder: Path = Path("/proc/net"), links: Path = _LINKS
) -> Sampler | None:
    """Interfaces in use and TCP; None where the kernel has no network."""
    if (dev := kernel_file(folder / "dev")) is None:
        return None
    others = [
        reads(file)
        for name, reads in (("snmp", _tcp), ("netstat", _tcp), ("softnet_stat", _softnet))
        if (file := kernel_file(folder / name)) is not None
    ]
    used = {
        name
        for name, row in parse_dev(dev.text()).items()
        if row["rx_packets"] or row["tx_packets"]
    }

    same = SameOnes(_KNOWN_BY)
    speeds = {name: speed for name in used if (speed := speed_of(links / name)) is not None}

    def take() -> Row:
        row = _of_interfaces(dev, speeds, used, same)
        for told in others:
            row |= told()
        return row

    return Sampler("network", tuple(_column(name) for name in take()), take)


def _of_interfaces(
    dev: KernelFile, speeds: Mapping[str, int], used: set[str], same: SameOnes
) -> Row:
    there = parse_dev(dev.text())
    found = same.of({name: there[name] for name in used & there.keys()})
    row: Row = {
        f"net.{name}.{field}": value for name, one in found.items() for field, value in one.items()
    }
    return row | {f"net.{name}.{_SPEED}": speeds[name] for name in found.keys() & speeds.keys()}


def _column(name: str) -> Column:
    if name.endswith(_SPEED):
        return Column(name, "B/s", "gauge")
    return Column(name, "B" if name.endswith("_bytes") else "1")
