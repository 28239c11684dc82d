"""Each rule of the linter fires where it should, and only there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.catalog import entries
from pgdyno.catalog.lint import rules
from pgdyno.linter import Finding, Severity, System, check
from pgdyno.linter.source import Kind, parse
from pgdyno.linter.system import GIB

SYSTEM = System(18, (6, 18), 64 * GIB)


def found(text: str, kind: Kind = "postgresql", system: System = SYSTEM) -> tuple[Finding, ...]:
    return check([parse("file", kind, text)], system)


# rule, kind, a file on which it fires, one on which it does not
CASES: tuple[tuple[str, Kind, str, str], ...] = (
    ("commit-delay-without-flush", "postgresql",
     "commit_delay = 10\nsynchronous_commit = off", "commit_delay = 10"),
    ("commit-delay-without-fsync", "postgresql", "commit_delay = 10\nfsync = off", "fsync = off"),
    ("minimal-wal-with-senders", "postgresql",
     "wal_level = minimal", "wal_level = minimal\nmax_wal_senders = 0"),
    ("minimal-wal-with-archive", "postgresql",
     "wal_level = minimal\narchive_mode = on", "wal_level = replica\narchive_mode = on"),
    ("minimal-wal-with-summaries", "postgresql",
     "wal_level = minimal\nsummarize_wal = on", "summarize_wal = on"),
    ("archive-to-nowhere", "postgresql",
     "archive_mode = on\narchive_command = '/bin/true'",
     "archive_mode = on\narchive_command = 'test ! -f /a/%f && cp %p /a/%f'"),
    ("archive-without-command", "postgresql",
     "archive_mode = on", "archive_mode = on\narchive_library = 'basic_archive'"),
    ("archive-command-ready", "postgresql",
     "archive_command = ':'", "archive_command = 'cp %p /a/%f'"),
    ("shared-memory-in-a-file", "postgresql",
     "dynamic_shared_memory_type = mmap", "dynamic_shared_memory_type = sysv"),
    ("bursts-of-checkpoints", "postgresql",
     "checkpoint_completion_target = 0.2", "checkpoint_completion_target = 0.5"),
    ("slots-for-two-phase-commit", "postgresql",
     "max_prepared_transactions = 100", "max_prepared_transactions = 0"),
    ("freeze-too-late", "postgresql",
     "autovacuum_freeze_max_age = 1600000000", "autovacuum_freeze_max_age = 1000000000"),
    ("multixact-freeze-too-late", "postgresql",
     "autovacuum_multixact_freeze_max_age = 1600000000",
     "autovacuum_multixact_freeze_max_age = 400000000"),
    ("table-age-beyond-freeze", "postgresql",
     "vacuum_freeze_table_age = 750000000",
     "vacuum_freeze_table_age = 750000000\nautovacuum_freeze_max_age = 900000000"),
    ("autovacuum-off", "postgresql", "autovacuum = off", "autovacuum = on"),
    ("parallel-beyond-processes", "postgresql",
     "max_parallel_workers = 40", "max_parallel_workers = 40\nmax_worker_processes = 40"),
    ("gather-beyond-parallel", "postgresql",
     "max_parallel_workers_per_gather = 9", "max_parallel_workers_per_gather = 8"),
    ("random-cheaper-than-order", "postgresql",
     "random_page_cost = 0.5", "random_page_cost = 1.0"),
    ("direct-io", "postgresql", "debug_io_direct = 'data'", "debug_io_direct = ''"),
    ("old-password-hashes", "postgresql",
     "password_encryption = md5", "password_encryption = scram-sha-256"),
    ("large-wal-buffers-without-flush", "postgresql",
     "wal_buffers = 1GB\nsynchronous_commit = off", "wal_buffers = 1GB"),
    ("huge-pages-left-to-luck", "postgresql",
     "shared_buffers = 16GB", "shared_buffers = 16GB\nhuge_pages = off"),
    ("many-sessions", "postgresql", "max_connections = 1000", "max_connections = 500"),
    ("recovery-of-hours", "postgresql", "max_wal_size = 320GB", "max_wal_size = 64GB"),
    ("shared-io", "postgresql", "effective_io_concurrency = 0", "effective_io_concurrency = 1"),
    ("few-requests-ahead", "postgresql",
     "effective_io_concurrency = 2", "effective_io_concurrency = 16"),
    ("checkpoints-seldom", "postgresql",
     "checkpoint_timeout = 55min", "checkpoint_timeout = 30min"),
    ("freeze-late", "postgresql",
     "autovacuum_freeze_max_age = 800000000", "autovacuum_freeze_max_age = 500000000"),
    ("multixact-freeze-late", "postgresql",
     "autovacuum_multixact_freeze_max_age = 900000000",
     "autovacuum_multixact_freeze_max_age = 800000000"),
    ("multixact-table-age-beyond-freeze", "postgresql",
     "vacuum_multixact_freeze_table_age = 750000000", "vacuum_multixact_freeze_table_age = 4"),
    ("vacuum-memory-beyond-use", "postgresql",
     "autovacuum_work_mem = 2GB", "autovacuum_work_mem = 1GB"),
    ("overcommit-ratio-unused", "sysctl",
     "vm.overcommit_ratio = 90", "vm.overcommit_ratio = 90\nvm.overcommit_memory = 2"),
    ("background-bytes-and-ratio", "sysctl",
     "vm.dirty_background_ratio = 5\nvm.dirty_background_bytes = 67108864",
     "vm.dirty_background_bytes = 67108864"),
    ("dirty-bytes-and-ratio", "sysctl",
     "vm.dirty_ratio = 5\nvm.dirty_bytes = 67108864", "vm.dirty_bytes = 67108864"),
    ("background-beyond-limit", "sysctl",
     "vm.dirty_bytes = 1000\nvm.dirty_background_bytes = 2000",
     "vm.dirty_bytes = 2000\nvm.dirty_background_bytes = 1000"),
    ("storm-at-the-checkpoint", "sysctl", "vm.dirty_ratio = 80", "vm.dirty_ratio = 40"),
    ("swappiness-zero", "sysctl", "vm.swappiness = 0", "vm.swappiness = 1"),
    ("reserved-low-memory", "sysctl",
     "vm.lowmem_reserve_ratio = 1 1 1", "vm.lowmem_reserve_ratio = 256 256 32"),
    ("receive-buffers-below-default", "sysctl",
     "net.ipv4.tcp_rmem = 8192 87380 16777216", "net.ipv4.tcp_rmem = 4096 131072 16777216"),
    ("fewer-ports-than-default", "sysctl",
     "net.ipv4.ip_local_port_range = 40000 65535", "net.ipv4.ip_local_port_range = 9000 65535"),
    ("other-processes-by-time-wait", "sysctl",
     "net.ipv4.tcp_tw_reuse = 1", "net.ipv4.tcp_tw_reuse = 2"),
    ("short-fin-timeout", "sysctl",
     "net.ipv4.tcp_fin_timeout = 5", "net.ipv4.tcp_fin_timeout = 60"),
    ("cores-fill-disks", "limits", "* soft core unlimited", "* soft core 0"),
    ("trim-at-once", "fstab",
     "/dev/sda1 / ext4 discard,noatime 0 1", "/dev/sda1 / ext4 noatime 0 1"),
    ("journal-elsewhere", "fstab",
     "/dev/sda1 / xfs logdev=/dev/sdb 0 1", "/dev/sda1 / xfs noatime 0 1"),
    ("one-node-of-several", "boot", "quiet numa=off", "quiet numa=on"),
    ("awake-from-boot-to-boot", "boot", "intel_idle.max_cstate=0", "intel_idle.max_cstate=1"),
    ("defences-off", "boot", "mitigations=off", "mitigations=auto"),
    ("clock-by-force", "commands",
     "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
     "cat /sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("systemd-does-not-read-limits", "limits", "* soft nofile 65536", "* soft nproc 65536"),
    ("locked-memory-not-needed", "limits", "* soft memlock unlimited", "* soft nproc 65536"),
    ("fewer-files-than-systemd", "sysctl",
     "fs.file-max = 7672460", "fs.file-max = 9223372036854775807"),
    ("reads-of-megabytes-ahead", "commands",
     "blockdev --setra 16384 /dev/sda", "blockdev --setra 8192 /dev/sda"),
    ("stripes-of-a-page", "commands", "lvcreate -I 8 vg", "lvcreate -I 64 vg"),
    ("stripes-without-a-copy", "commands", "lvcreate --stripes=3 vg", "lvcreate -i 1 vg"),
    ("groups-by-the-thousand", "commands",
     "mkfs.xfs -f -d agcount=9000 /dev/sdb", "mkfs.xfs -f -d agcount=32 /dev/sdb"),
    ("nothing-kept-for-root", "commands", "mkfs.ext4 -m 0 /dev/sdb", "mkfs.ext4 -m 1 /dev/sdb"),
    ("tables-made-during-the-benchmark", "commands",
     "mke2fs -E stride=2,lazy_itable_init=1 /dev/sdb", "mke2fs -E lazy_itable_init=0 /dev/sdb"),
    ("groups-made-later", "commands",
     "mkfs.ext4 -O extent,uninit_bg /dev/sdb", "mkfs.ext4 -O extent,^uninit_bg /dev/sdb"),
    ("build-for-one-cpu", "commands",
     "CFLAGS='-O2 -march=native' ./configure", "./configure CFLAGS=-O2"),
    ("text-without-encoding", "commands", "initdb -E SQL_ASCII", "initdb -E UTF8"),
)  # fmt: skip


def test_each_rule_has_its_cases() -> None:
    assert [case[0] for case in CASES] == [
        name for family in ("server", "machine") for name in rules_of(family)
    ]


def rules_of(family: str) -> list[str]:
    from pgdyno.catalog.tables import read_tables  # noqa: PLC0415  order of the files

    return list(read_tables("lint")[family])


@pytest.mark.parametrize(("rule", "kind", "bad", "good"), CASES, ids=[case[0] for case in CASES])
def test_a_rule_fires_where_it_should_and_only_there(
    rule: str, kind: Kind, bad: str, good: str
) -> None:
    system = replace(SYSTEM, postgres=rules()[rule].until or SYSTEM.postgres)
    (one,) = [one for one in found(bad, kind, system) if one.rule == rule]
    assert one.severity == rules()[rule].severity
    assert "{" not in one.text, "a value was not filled in"
    assert not [one for one in found(good, kind, system) if one.rule == rule]


def test_a_rule_ends_with_its_version() -> None:
    assert not found("autovacuum_work_mem = 2GB")


@pytest.mark.parametrize(
    ("rule", "bad", "good"),
    [
        ("cache-size", "huge_pages = off\nshared_buffers = 60GB", "shared_buffers = 32GB"),
        ("work-memory-beyond-memory", "work_mem = 1GB", "work_mem = 4MB"),
        ("at-most", "min_wal_size = 2GB", "min_wal_size = 1GB"),
        ("set-twice", "fsync = off\nfsync = on", "fsync = on\nfsync = on"),
    ],
)
def test_sums_and_orders_of_a_server(rule: str, bad: str, good: str) -> None:
    assert [one.rule for one in found(bad) if one.rule] == [rule]
    assert not [one for one in found(good) if one.rule == rule]


def test_sums_of_a_machine() -> None:
    text = "vm.min_free_kbytes = 6291456\nvm.nr_hugepages = 40000"
    told = {one.rule for one in found(text, "sysctl")}
    assert told == {"too-much-kept-free", "huge-pages-beyond-memory"}
    assert not found("vm.min_free_kbytes = 67584\nvm.nr_hugepages = 100", "sysctl")
    limits = parse("limits.conf", "limits", "* soft nofile 2000000")
    one, _ = check([limits], SYSTEM)
    assert one.rule == "files-beyond-kernel"
    more = parse("sysctl.conf", "sysctl", "fs.nr_open = 20480000")
    (note,) = check([limits, more], SYSTEM)
    assert note.rule == "systemd-does-not-read-limits"


def test_numbers_that_the_kernel_refuses() -> None:
    (one, _) = found("kernel.shmmni = 819200", "sysctl")
    assert (one.severity, one.text) == (
        Severity.INVALID, "is more than 32768: writing it fails"
    )  # fmt: skip
    (one,) = found("vm.dirty_ratio = -1", "sysctl")
    assert one.severity is Severity.INVALID
    assert not found("vm.dirty_ratio = 10", "sysctl")


def test_huge_pages_beyond_the_cache_leave_less_for_sessions() -> None:
    conf = parse("postgresql.conf", "postgresql", "shared_buffers = 30GB\nwork_mem = 256MB")
    pages = parse("sysctl.conf", "sysctl", "vm.nr_hugepages = 26000")
    assert "work-memory-beyond-memory" not in {one.rule for one in check([conf], SYSTEM)}
    (one,) = [one for one in check([conf, pages], SYSTEM) if "work-memory" in one.rule]
    assert "the huge pages are 75.8 GiB" in one.text


def test_memory_of_sockets_is_counted_in_pages() -> None:
    (one,) = found("net.ipv4.tcp_mem = 8388608 12582912 16777216", "sysctl")
    assert one.rule == "sockets-beyond-memory"
    assert "64.0 GiB" in one.text
    assert not found("net.ipv4.tcp_mem = 94500 126000 189000", "sysctl")


def test_blocks_beyond_a_page_need_a_kernel_that_mounts_them() -> None:
    line = "mkfs.xfs -b size=8192 /dev/sdb"
    assert not found(line, "commands")
    (one,) = found(line, "commands", System(18, (6, 1), 64 * GIB))
    assert (one.severity, one.rule) == (Severity.CONTRADICTORY, "blocks-beyond-kernel")


def test_a_module_that_may_not_be_there_is_told() -> None:
    (one,) = found("net.netfilter.nf_conntrack_max = 1200000", "sysctl")
    assert one.severity is Severity.NOTE
    assert "only while the module nf_conntrack is loaded" in one.text


def test_a_version_decides_what_is_gone_and_what_is_new() -> None:
    text = "wal_keep_segments = 0\nio_method = worker"
    gone = [one for one in found(text) if one.severity is Severity.GONE]
    assert [(one.at.name, one.hint) for one in gone] == [
        ("wal_keep_segments", "Instead: wal_keep_size.")
    ]
    (long_gone,) = found("checkpoint_segments = 3")
    assert long_gone.text == "gone since PostgreSQL 9.5: the server does not start with it"
    old = found(text, system=System(12, (5, 10), 64 * GIB))
    assert [(one.at.name, one.severity) for one in old] == [("io_method", Severity.GONE)]
    sysctl = "net.ipv4.tcp_tw_recycle = 0\nkernel.io_uring_disabled = 2"
    assert [one.at.line for one in found(sysctl, "sysctl")] == [1]
    older = found(sysctl, "sysctl", System(18, (4, 9), 64 * GIB))
    assert [one.at.line for one in older] == [2]


def test_names_and_values_that_cannot_be() -> None:
    text = "shared_bufers = 1GB\nwork_mem = 4XB\nfsync = perhaps\nmy.own = 3\nTIMEZONE = 'UTC'"
    told = [(one.at.line, one.severity, one.hint) for one in found(text)]
    assert told[0][:2] == (2, Severity.INVALID)
    assert told[1][:2] == (3, Severity.INVALID)
    assert told[2] == (1, Severity.UNKNOWN, "Did you mean shared_buffers?")
    assert len(told) == 3, "settings of extensions and other cases of letters are fine"


def test_a_name_of_the_kernel_is_told_where_it_looks_like_a_slip() -> None:
    (one,) = found("vm.swapiness = 1\nkernel.hostname = db1\nvm.legacy_va_layout = 0", "sysctl")
    assert (one.at.line, one.severity) == (1, Severity.NOTE)
    assert one.hint == "Did you mean vm.swappiness?"


def test_defences_may_be_left_out_by_kinds_of_attackers() -> None:
    assert not found("mitigations=auto,no_guest_host,no_guest_guest", "boot")


def test_flags_are_shown_without_a_value() -> None:
    text = "/dev/sdb /d ext4 nobarrier,data=writeback 0 0"
    assert [one.shown for one in parse("f", "fstab", text).assignments] == [
        "nobarrier", "data = writeback"
    ]  # fmt: skip
    (mount,) = parse("f", "commands", "mount -t ext4 -o nobarrier /dev/sdb /d").assignments
    assert mount.shown == "nobarrier"
    (mke2fs,) = parse("f", "commands", "mke2fs -O uninit_bg /dev/sdb").assignments
    assert mke2fs.shown == "mke2fs -O uninit_bg"
    (fsync,) = parse("f", "postgresql", "fsync = on").assignments
    assert fsync.shown == "fsync = on"


def test_lines_that_cannot_be_read_are_told() -> None:
    (one,) = found("fsync = on\n'what'\n")
    assert (one.at.line, one.severity) == (2, Severity.INVALID)
    assert [one.at.line for one in found("vm.swappiness\n", "sysctl")] == [1]


def test_notations_of_files() -> None:
    text = "work_mem 64MB # a comment\nsearch_path='a, ''b'''\ninclude = 'other.conf'\n"
    read = parse("f", "postgresql", text).assignments
    assert [(one.name, one.value) for one in read] == [
        ("work_mem", "64MB"), ("search_path", "a, 'b'")
    ]  # fmt: skip
    sysctl = parse("f", "sysctl", "; c\n-net/ipv4/tcp_rmem = 1  2\t3\n").assignments
    assert [(one.name, one.value) for one in sysctl] == [("net.ipv4.tcp_rmem", "1 2 3")]


def test_stages_of_a_plan_carry_what_came_before() -> None:
    text = """
[[stage]]
name = "a"
settings = { commit_delay = 10, fsync = true }
[[stage]]
name = "b"
settings = { synchronous_commit = "off" }
[[stage]]
name = "c"
afresh = true
settings = { commit_delay = 10 }
"""
    told = [one.at.scope for one in found(text, "plan") if one.rule]
    assert told == ["stage b"]


def test_options_of_other_file_systems_are_no_matter() -> None:
    assert not found("tmpfs /run tmpfs nr_inodes=1k,mode=755 0 0", "fstab")
    assert found("/dev/sdb /d xfs nobarrier 0 0", "fstab")[0].severity is Severity.GONE
    assert found("/dev/sdb /d ext4 nobarrier 0 0", "fstab")[0].severity is Severity.DANGEROUS
    (one,) = found("/dev/sdb /d ext4 data=sometimes 0 0", "fstab")
    assert one.severity is Severity.INVALID


def test_a_name_that_is_longer_than_the_kernel_takes_is_one_that_nobody_knows() -> None:
    assert found(f"vm.{'9' * 5000} = 1", "sysctl") == ()


def test_what_a_file_includes_is_not_taken_as_read() -> None:
    (one,) = found("work_mem = 8MB\ninclude_dir 'conf.d'\n")
    assert (one.at.line, one.severity) == (2, Severity.NOTE)
    assert one.text == "is not followed: name its files, too"


@pytest.mark.parametrize("auto", ["/data/postgresql.auto.conf", "/etc/pg/postgresql.auto.conf"])
def test_what_alter_system_has_set_counts(auto: str) -> None:
    """It lies in the data directory, which need not be where postgresql.conf is."""
    files = [
        parse(auto, "postgresql", "fsync = off\nwork_mem = 16MB\n"),
        parse("/etc/pg/postgresql.conf", "postgresql", "work_mem = 8MB\ncommit_delay = 10\n"),
    ]
    told = {one.rule: one for one in check(files, SYSTEM) if one.rule}

    assert told["set-twice"].at.where == "/etc/pg/postgresql.conf:1"
    assert told["set-twice"].text == f"is set again in {auto}:2: 16MB counts"
    assert "commit-delay-without-fsync" in told, "both are of one server"


def test_of_two_servers_files_of_alter_system_belong_to_that_beside_them() -> None:
    files = [
        parse("/a/postgresql.conf", "postgresql", "commit_delay = 10\n"),
        parse("/b/postgresql.conf", "postgresql", "work_mem = 8MB\n"),
        parse("/b/postgresql.auto.conf", "postgresql", "work_mem = 8MB\nfsync = off\n"),
    ]
    told = [one.rule for one in check(files, SYSTEM) if one.rule]
    assert "commit-delay-without-fsync" not in told
    assert "set-twice" not in told, "the same value"


def test_bare_numbers_are_told_with_their_units() -> None:
    (order,) = [one for one in found("max_wal_size = 32MB") if "more than" in one.text]
    assert order.text == "min_wal_size = 80MB is more than max_wal_size = 32MB"
    small = replace(SYSTEM, memory_bytes=GIB)
    (both,) = found("work_mem = 65536\nshared_buffers = 16384", system=small)
    assert both.text.startswith("65536kB for each of 100 sessions and the cache are")
    assert both.at.name == "work_mem"


def test_memory_that_is_mostly_the_caches_is_told_where_that_is_set() -> None:
    (both,) = [
        one for one in found("work_mem = 64\nshared_buffers = 8TB") if "sessions" in one.text
    ]
    assert both.at.name == "shared_buffers"
    assert both.text.startswith("64kB for each of 100 sessions")


@pytest.mark.parametrize(
    ("line", "taken"),
    [  # each tried with `postgres -C` of 15
        ("fsync = of", "off"), ("full_page_writes = 'fal'", "off"), ("fsync = tr", "on"),
        ("max_connections = 60.5", "60"), ("effective_io_concurrency = 200.2", "200"),
        ("shared_buffers = '0.2GB'", "26240 of 8kB"), ("work_mem = 0x2000", "8192kB"),
        ("log_min_duration_statement = 500.5", "500ms"),
    ],
)  # fmt: skip
def test_what_the_server_takes_is_told_as_it_takes_it(line: str, taken: str) -> None:
    (told,) = [one for one in found(line) if "is taken as" in one.text]
    assert (told.severity, told.text) == (Severity.NOTE, f"is taken as {taken}")


def test_a_danger_that_is_written_short_is_one() -> None:
    assert [one.severity for one in found("fsync = of")] == [Severity.DANGEROUS, Severity.NOTE]
    assert [one.severity for one in found("fsync = o")] == [Severity.INVALID], "on, or off?"


@pytest.mark.parametrize("name", [n for n, one in rules().items() if one.severity == "dangerous"])
def test_what_is_dangerous_has_a_risk_in_the_catalogue(name: str) -> None:
    known = [entries()[one] for one in rules()[name].when if one in entries()]
    assert any(one.risk != "none" for one in known)
