"""Settings in shell lines and on the kernel's command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.linter import Severity, System, check, read_source
from pgdyno.linter.source import Kind, kind_of, parse
from pgdyno.linter.system import GIB
from pgdyno.model.errors import PlanError


def told(text: str, kind: Kind = "commands") -> list[tuple[int, str, str]]:
    return [(one.line, one.name, one.value) for one in parse("f", kind, text).assignments]


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("lvcreate -A y -i 8 -I 8 -l 100%FREE -n lv01 vg",
         {"lvcreate --stripes": "8", "lvcreate --stripesize": "8"}),
        ("sudo /sbin/mkfs.xfs -f -b size=4096 -d agcount=9,sunit=16 /dev/sdb",
         {"mkfs.xfs -b size": "4096", "mkfs.xfs -d agcount": "9", "mkfs.xfs -d sunit": "16"}),
        ("mkfs.ext4 /dev/sdb -m 0 -O extent,^metadata_csum -T largefile",
         {"mke2fs -m": "0", "mke2fs -O extent": "on", "mke2fs -O metadata_csum": "off",
          "mke2fs -T": "largefile"}),
        ("initdb -D $PGDATA -U postgres -k --lc-collate=C --wal-segsize=1024",
         {"initdb --data-checksums": "on", "initdb --lc-collate": "C",
          "initdb --wal-segsize": "1024"}),
        ('CC=/llvm/bin/clang CFLAGS="-O2 -fstrict-enums" ./configure --prefix=/p --with-lz4',
         {"CC": "clang", "-O": "2", "-fstrict-enums": "on", "--prefix": "/p", "--with-lz4": "on"}),
        ("blockdev --setra 16384 /dev/sda", {"queue/read_ahead_kb": "8192"}),
        ("echo 2 > /sys/block/vdb/queue/rq_affinity", {"queue/rq_affinity": "2"}),
        ("echo never | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
         {"transparent_hugepage/enabled": "never"}),
        ("echo f > /sys/class/net/eth0/queues/rx-12/rps_cpus", {"rps_cpus": "f"}),
        ("sysctl -w vm.swappiness=1 net/core/somaxconn=9",
         {"vm.swappiness": "1", "net.core.somaxconn": "9"}),
        ("mount -t ext4 -o noatime,barrier=0 /dev/sdb /d", {"noatime": "on", "barrier": "0"}),
        ("ethtool -L eth0 combined 32", {"channels combined": "32"}),
        ("systemctl enable irqbalance.service", {"irqbalance": "on"}),
        ("modprobe x && echo 0 > /sys/kernel/mm/ksm/run; date", {"ksm/run": "0"}),
        ("echo 'hello > /there'", {}),
        ("for x in a b; do", {}),
        ("it's not a line", {}),
    ],
)  # fmt: skip
def test_what_a_line_sets(line: str, settings: dict[str, str]) -> None:
    assert {name: value for _, name, value in told(line)} == settings


def test_a_line_goes_on_after_a_backslash() -> None:
    assert told("lvcreate -i 3 \\\n  -I 8 vg\nblockdev --setra 256 /dev/sda") == [
        (1, "lvcreate --stripes", "3"),
        (1, "lvcreate --stripesize", "8"),
        (3, "queue/read_ahead_kb", "128"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        'GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT="quiet numa=off"',
        "linux /vmlinuz root=/dev/sda1 quiet numa=off",
    ],
)
def test_the_command_line_of_the_kernel(text: str) -> None:
    assert {("quiet", "on"), ("numa", "off")} <= {one[1:] for one in told(text, "boot")}
    assert [one.at.name for one in check([parse("f", "boot", text)], SYSTEM)] == ["numa"]


SYSTEM = System(18, (6, 18), 64 * GIB)


def test_each_command_counts_also_where_another_follows() -> None:
    text = (
        "mkfs.ext4 -m 0 /dev/sdb\nmkfs.ext4 -m 5 /dev/sdc\nmount -t ext4 -o barrier=0 /dev/sdb /d"
    )
    found = check([parse("f", "commands", text)], SYSTEM)
    assert [(one.at.line, one.severity) for one in found] == [
        (3, Severity.DANGEROUS), (1, Severity.NOTE)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("/etc/default/grub", "boot"), ("cmdline", "boot"), ("setup.sh", "commands"),
        ("/etc/rc.local", "commands"), ("postgresql.auto.conf", "postgresql"),
        ("/etc/sysctl.d/30-db.conf", "sysctl"), ("/etc/sysctl.d/db.conf", "sysctl"),
        ("/etc/security/limits.d/30-db.conf", "limits"),
        ("/etc/postgresql/15/main/conf.d/10-cache.conf", "postgresql"), ("plan.toml", "plan"),
    ],
)  # fmt: skip
def test_names_tell_the_kind(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_what_cannot_be_read_is_told_before_its_name_is_judged(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="what cannot be read: no such file"):
        read_source(str(tmp_path / "what"))
    (tmp_path / "what").touch()
    with pytest.raises(PlanError, match="whatt cannot be read") as caught:
        read_source(str(tmp_path / "whatt"))
    assert caught.value.hint == f"Did you mean {tmp_path / 'what'}?"
    with pytest.raises(PlanError, match="what: its name does not say what it is") as caught:
        read_source(str(tmp_path / "what"))
    assert "--kind postgresql, sysctl" in (caught.value.hint or "")
