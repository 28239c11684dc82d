"""A small machine made of files."""

from __future__ import annotations

from pathlib import Path

import pytest

FILES = {
    "proc/sys/vm/swappiness": "60",
    "proc/sys/vm/dirty_background_bytes": "0",
    "proc/sys/vm/dirty_background_ratio": "10",
    "proc/sys/vm/nr_hugepages": "0",
    "proc/sys/kernel/numa_balancing": "1",
    "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456",
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
    "sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never",
    "sys/block/vda/size": "2048000",
    "sys/block/vda/queue/scheduler": "none [mq-deadline] kyber",
    "sys/block/vda/queue/nr_requests": "256",
    "sys/block/vda/queue/read_ahead_kb": "128",
    "sys/block/vda/queue/atomic_write_unit_max_bytes": "0",
    "sys/block/vda/queue/rotational": "0",
    "sys/block/vda/queue/logical_block_size": "512",
    "sys/block/vda/queue/physical_block_size": "4096",
    "sys/block/vda/queue/write_cache": "write back",
    "sys/block/loop0/size": "0",
    "sys/block/ram0/size": "8192",
    "sys/devices/system/cpu/online": "0-3",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave",
    "sys/devices/system/cpu/cpufreq/policy1/scaling_governor": "powersave",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "kvm-clock",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "kvm-clock tsc",
    "sys/fs/cgroup/a/cpu.max": "150000 100000",
    "sys/fs/cgroup/cpu.max": "max 100000",
    "sys/class/dmi/id/sys_vendor": "QEMU",
    "proc/cpuinfo": "model name\t: Xeon\nflags\t\t: fpu hypervisor\ncpu MHz\t\t: 2100.000",
    "proc/stat": "cpu  100 0 100 700 0 0 0 100 0 0",
    "proc/meminfo": "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\nHugePages_Total: 8\n"
    "HugePages_Free: 8\nHugePages_Rsvd: 2\nHugepagesize: 2048 kB\nSwapTotal: 0 kB",
    "proc/mounts": "/dev/vda1 / ext4 rw,relatime 0 0\n/dev/vdb /data xfs rw,noatime 0 0\n"
    "tmpfs /run tmpfs rw 0 0",
    "sys/class/net/eth0/mtu": "1500",
    "sys/class/net/eth0/operstate": "up",
    "sys/class/net/eth0/speed": "10000",
    "sys/class/net/eth0/queues/rx-0/rps_cpus": "0",
    "sys/class/net/eth0/queues/rx-1/rps_cpus": "0",
    "sys/class/net/eth0/queues/tx-0/xps_cpus": "1",
    "sys/class/net/ifb0/operstate": "down",
    "sys/devices/pci0/0000:01/msi_irqs/30": "msix",
    "sys/devices/pci0/0000:01/msi_irqs/31": "msix",
    "sys/devices/pci0/0000:01/virtio0/net/eth0/address": "0",
    "sys/devices/system/node/node0/cpulist": "0-3",
    "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:  8388608 kB\nNode 0 MemFree: 1 kB",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "8",
    "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "2",
    "proc/interrupts": "      CPU0  CPU1\n  30:   10    0  PCI-MSIX  eth0-rx\n"
    "  31:   30    0  PCI-MSIX  eth0-tx\n  32:  5  5  PCI-MSIX  other\nNMI:  1  1  masked",
    "proc/self/cgroup": "4:memory:/a/b\n2:cpu,cpuacct:/a\n0::/a/b",
    "proc/77/comm": "irqbalance",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    (root / "sys/class/net/eth0/device").symlink_to(root / "sys/devices/pci0/0000:01/virtio0")
    return root
