"""A campaign of mutated outputs of other programs: read, or refused by an error of ours.

pgbench's log and summary, fio's JSON, pg_test_fsync, pg_test_timing, the server's log, files of
/proc, lsblk's JSON, every sample of another tool's results. A record that is made of one holds
finite numbers; nothing else is known of it.
"""

from __future__ import annotations

import io
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pgdyno.api.imports import import_results
from pgdyno.drive.pgbench_log import Form, Log
from pgdyno.drive.pgbench_output import error_of, progress_of, summary
from pgdyno.host.device import rows_of
from pgdyno.model.errors import PgdynoError
from pgdyno.probe.clock import parse_clock
from pgdyno.probe.fio import commits_of, grid_point, parse_jobs
from pgdyno.probe.sync import parse_sync
from pgdyno.sample import proc_stat
from pgdyno.sample.samplers import disk, memory, network
from pgdyno.sample.server_log import read_log
from pgdyno.target.host_facts import read_meminfo
from tests.attack.mutations import spoiled
from tests.attack.outcome import Tally, bounded
from tests.data.hammerdb_jobs import job_store
from tests.data.imported import SAMPLES

DATA = Path(__file__).parents[1] / "data"
SEED = 12
S = 1_000_000_000
BEGIN = 1_795_348_700 * S
LOG = """\
2026-11-21 10:00:00.000 UTC [42] LOG:  starting PostgreSQL 18.6
2026-11-21 10:00:01.000 UTC [43] LOG:  redo starts at 0/1A2B3C
2026-11-21 10:00:02.000 UTC [43] LOG:  redo done at 0/2A2B3C system usage: CPU: user: 0.01 s
2026-11-21 10:00:02.100 UTC [42] LOG:  database system is ready to accept connections
2026-11-21 10:00:05.000 UTC [44] LOG:  checkpoint starting: time
2026-11-21 10:00:09.000 UTC [44] LOG:  checkpoint complete: wrote 812 buffers (5.0%); 0 WAL file(s)\
 added, 0 removed, 3 recycled; write=3.900 s, sync=0.010 s, total=4.000 s; sync files=9
2026-11-21 10:00:10.000 UTC [45] LOG:  automatic vacuum of table "bench.public.order_line": index
\tpages: 0 removed, 9 remain
\tsystem usage: CPU: user: 0.10 s, system: 0.00 s, elapsed: 1.50 s
2026-11-21 10:00:11.000 UTC [46] ERROR:  division by zero
"""
_PART = {
    "name": "vdb1", "path": "/dev/vdb1", "type": "part", "size": 1 << 29, "log-sec": 512,
    "phy-sec": 4096, "mountpoints": ["/srv"], "ro": False,
}  # fmt: skip
_DISK = {
    "name": "vdb", "path": "/dev/vdb", "type": "disk", "size": 1 << 30, "log-sec": 512,
    "phy-sec": 4096, "mountpoints": [None], "ro": False, "children": [_PART],
}  # fmt: skip
LSBLK = json.dumps({"blockdevices": [_DISK]})


@dataclass(frozen=True, slots=True)
class Reader:
    """An output, and what reads it; `foreseen` are errors that its caller turns into words."""

    name: str
    text: bytes
    read: Callable[[bytes], object]
    foreseen: tuple[type[Exception], ...] = ()

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        """All errors that refuse it."""
        return (PgdynoError, *self.foreseen)


def _text(reader: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: reader(data.decode("utf-8", errors="replace"))


def _log(form: Form, kinds: int) -> Callable[[bytes], object]:
    def read(data: bytes) -> object:
        names = [f"kind {number}" for number in range(kinds)]
        log = Log(names, form, BEGIN, (BEGIN, BEGIN + 1000 * S))
        log.read("a.log", io.BytesIO(data))
        return [log.kinds(), log.series(), log.errors()]

    return read


def _summary(data: bytes) -> object:
    lines = data.decode("utf-8", errors="replace").split("\n")
    told = [(progress_of(line), error_of(line)) for line in lines]
    return told, summary(lines, "pgbench", ["one", "other"])


def _grid(data: bytes) -> object:
    jobs = parse_jobs(data.decode("utf-8", errors="replace"), "a test")
    return [grid_point(job, "random read", 4, 1) for job in jobs]


def _commits(data: bytes) -> object:
    jobs = parse_jobs(data.decode("utf-8", errors="replace"), "a test")
    return [commits_of(job) for job in jobs]


def _imported(tool: str) -> Callable[[bytes], object]:
    """As `pgdyno import` reads it: by its content, else as the tool that wrote it."""

    def read(data: bytes) -> object:
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            try:
                found = import_results([file.name])
            except PgdynoError:
                found = import_results([file.name], tool=tool)
        assert "".join(found.lines())
        assert json.loads(found.to_json())["results"]
        return found

    return read


def _server(text: str) -> object:
    return read_log(text.split("\n"))


# The recorder names a sampler that fails, and asks it no more.
_UNREADABLE = (ValueError, IndexError, OverflowError)
_OF_THE_KERNEL: dict[str, Callable[[str], object]] = {
    "meminfo-6.18": memory.parse_meminfo, "vmstat-6.18": memory.parse_vmstat,
    "net-dev-6.18": network.parse_dev, "snmp-6.18": network.parse_tcp,
    "netstat-6.18": network.parse_tcp, "softnet-6.18": network.parse_softnet,
}  # fmt: skip


def readers() -> Iterator[Reader]:
    """All outputs that were recorded, each with its reader."""
    forms = {"rate": (Form(True, True), 1), "ser": (Form(False, True), 2)}
    for path in sorted((DATA / "pgbench").iterdir()):
        data = path.read_bytes()
        if path.suffix == ".log":
            yield Reader(path.name, data[:20_000].rpartition(b"\n")[0] + b"\n",
                         _log(*forms[path.stem.partition("-")[2]]))  # fmt: skip
        else:
            yield Reader(path.name, data, _summary)
    for name, read in (("randread", _grid), ("commits", _commits), ("together", _grid)):
        yield Reader(f"fio-{name}", (DATA / "probe" / f"fio-{name}.json").read_bytes(), read)
    for path in sorted((DATA / "probe").glob("*.txt")):
        one = parse_sync if path.name.startswith("fsync") else parse_clock
        yield Reader(path.name, path.read_bytes(), _text(one))
    yield Reader("server's log", LOG.encode(), _text(_server))
    yield Reader("lsblk", LSBLK.encode(), _text(lambda text: rows_of(text, "/dev/vdb")))
    for version in ("5.10", "6.18"):
        stat = (DATA / "proc" / f"stat-{version}").read_bytes()
        disks = (DATA / "proc" / f"diskstats-{version}").read_bytes()
        yield Reader(f"stat-{version}", stat, _text(proc_stat.parse_host), _UNREADABLE)
        yield Reader(f"diskstats-{version}", disks, _text(disk.parse), _UNREADABLE)
    for name, parse in _OF_THE_KERNEL.items():
        yield Reader(name, (DATA / "proc" / name).read_bytes(), _text(parse), _UNREADABLE)
    for sample in SAMPLES:
        yield Reader(sample.file, sample.path.read_bytes()[:20_000], _imported(sample.tool))
    with tempfile.TemporaryDirectory() as folder:
        jobs = job_store(Path(folder) / "jobs").read_bytes()
    yield Reader("HammerDB's job store", jobs, _imported("HammerDB"))
    yield Reader("meminfo", Path("/proc/meminfo").read_bytes(), _text(read_meminfo), (ValueError,))


READERS = tuple(readers())


def require_finite(value: Any) -> None:
    """Whether all numbers of a record are finite."""
    if isinstance(value, float):
        assert math.isfinite(value), f"{value} was read"
    elif is_dataclass(value):
        for field in fields(value):
            require_finite(getattr(value, field.name))
    elif isinstance(value, dict):
        require_finite(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            require_finite(one)
    elif isinstance(value, np.ndarray):
        assert np.isfinite(value).all()


@pytest.mark.parametrize(
    ("first", "count"), [(0, 20), pytest.param(20, 100, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_mutated_output_is_read_or_refused(reader: Reader, first: int, count: int) -> None:
    tally = Tally("mutated outputs")
    for number in range(first, first + count):
        data = spoiled(reader.text, np.random.default_rng([SEED, number]))
        with tally.case(number, data, reader.name), bounded():
            try:
                require_finite(reader.read(data))
                how = "accepted"
            except reader.refusals as error:
                how = "refused" if str(error) else "refused without a word"
            tally.counts[how] += 1
    assert "refused without a word" not in tally.counts
    tally.keep()
