"""What `perf script` printed, saved, becomes samples, and these a tree."""

from __future__ import annotations

from pathlib import Path

from pgdyno.model.profile import KERNEL, UNKNOWN
from pgdyno.profiler.kernel_symbols import KernelSymbols
from pgdyno.profiler.perf_script import (
    Account,
    Folded,
    Sample,
    Script,
    clean,
    fold,
    read_samples,
)

SAVED = Path(__file__).parents[2] / "data" / "profile"
NONE = KernelSymbols(())
KALLSYMS = """\
ffffffff81000130 T entry_SYSCALL_64_after_hwframe
ffffffff816ba000 T vfs_read
ffffffff816c0000 d not_a_function
ffffffff821ef600 t do_syscall_64\t[module]
"""


def read(name: str, kernel: KernelSymbols = NONE) -> tuple[list[Sample], Script]:
    script = Script()
    return list(read_samples((SAVED / name).read_text().splitlines(), script, kernel)), script


def names(sample: Sample) -> list[str]:
    return [frame.name for frame in sample.frames]


def test_a_stack_is_read_from_its_innermost_function() -> None:
    samples, script = read("coreutils.txt")

    assert script == Script(lost=3, not_understood=0)
    assert [one.pid for one in samples] == [8731, 8732, 8731, 0]
    first = samples[0]
    assert first.monotonic_ns == 1259_966_980_430
    assert first.period_ns == 10_101_010
    assert names(first)[:2] == ["_copy_to_iter", "get_random_bytes_user"]
    assert (first.frames[-1].name, first.frames[-1].module) == ("read", "libc.so.6")
    assert {one.module for one in first.frames[:-1]} == {KERNEL}


def test_what_has_no_symbol_keeps_its_module() -> None:
    samples, _ = read("coreutils.txt")
    account = Account("server")
    for sample in samples:
        account.add(sample)

    assert [(one.name, one.module) for one in samples[1].frames[:2]] == [(UNKNOWN, "md5sum")] * 2
    quality = account.quality(lost=3)
    assert (quality.samples, quality.lost, quality.frames) == (4, 3, 7 + 5 + 7 + 3)
    assert quality.frames_named == quality.frames - 4
    assert quality.unnamed == (("md5sum", 4),)
    # Two stacks end in the middle of a program, one begins where programs do, one is the kernel's.
    assert (quality.user_stacks, quality.user_stacks_whole) == (3, 1)


def test_the_kernels_names_are_looked_up_where_perf_may_not_see_them() -> None:
    lines = [
        "  7/7   1.000000001:   10101010 ",
        "\tffffffff816badaa [unknown] ([unknown])",
        "\tffffffff821ef691 [unknown] ([kernel.kallsyms])",
        "\t           f82ad read (/usr/lib/libc.so.6)",
    ]
    for kernel, expected in (
        (KernelSymbols(KALLSYMS.splitlines()), ["vfs_read", "do_syscall_64", "read"]),
        (NONE, [UNKNOWN, UNKNOWN, "read"]),
        (KernelSymbols(["0000000000000000 T hidden"]), [UNKNOWN, UNKNOWN, "read"]),
    ):
        (sample,) = read_samples(lines, Script(), kernel)
        assert names(sample) == expected
        assert [one.module for one in sample.frames] == [KERNEL, KERNEL, "libc.so.6"]


def test_an_address_below_all_functions_has_no_name() -> None:
    kernel = KernelSymbols(KALLSYMS.splitlines())
    assert kernel.are_told
    assert kernel.name(0xFFFFFFFF80000000) == UNKNOWN
    assert kernel.name(0xFFFFFFFF816C0001) == "vfs_read", "data are no functions"


def test_lines_that_nobody_expects_are_counted_and_harm_nothing() -> None:
    script = Script()
    lines = ["\t f82ad read (/lib)", "Warning: something", "", " 1/1 2.000000: 7 x:", "", "rest"]
    (sample,) = read_samples(lines, script, NONE)
    assert (sample.pid, sample.monotonic_ns, sample.frames) == (1, 2_000_000_000, ())
    assert script.not_understood == 3


def test_names_of_two_builds_are_the_same() -> None:
    assert clean("heap_update.isra.0.cold") == "heap_update"
    assert clean("core::fmt::write::h0123456789abcdef") == "core::fmt::write"
    assert clean("operator()(int) const") == "operator()(int) const"
    assert clean(".cold") == ".cold"


def test_samples_of_whole_seconds_are_folded_by_role() -> None:
    samples, _ = read("coreutils.txt")
    folded, account = Folded(1), Account("server")
    roles = {8731: "backend", 8732: "checkpointer"}
    begin = 1259_970_000_000  # after the first sample

    fold(samples, folded, account, begin, roles.get)

    stacks = folded.stacks(99)
    assert account.samples == 2, "one came before the window, one is of nobody"
    assert len(stacks.seconds) == 1
    tops = {node: count for node, count in stacks.seconds[0]}
    assert sum(tops.values()) == 2
    paths = []
    for top in tops:
        node, path = top, []
        while node >= 0:
            assert stacks.parents[node] < node
            path.append(stacks.functions[stacks.names[node]][0])
            node = stacks.parents[node]
        paths.append(path[::-1])
    assert sorted(path[0] for path in paths) == ["backend", "checkpointer"]
    assert ["backend", "read", "entry_SYSCALL_64_after_hwframe"] in [path[:3] for path in paths]


def test_sessions_of_a_server_are_followed_to_where_programs_begin() -> None:
    samples, script = read("server-18.txt")
    account = Account("server")
    for sample in samples:
        account.add(sample)

    assert script == Script()
    quality = account.quality(script.lost, cpu_s=1.5)
    assert quality.samples == quality.user_stacks == quality.user_stacks_whole == 9
    # As the server's user, perf does not see the kernel's names: they come from our own look-up.
    assert quality.unnamed == ((KERNEL, quality.frames - quality.frames_named),)
    assert quality.frames_named > 150
    assert quality.cpu_s == 1.5
    assert names(samples[0])[0] == "hash_search_with_hash_value"
    assert names(samples[0])[-2:] == ["__libc_start_main@@GLIBC_2.34", "_start"]
    assert "ServerLoop" in names(samples[0]), "without what the compiler adds"
    assert {one.module for sample in samples for one in sample.frames} <= {
        "postgres", "libc.so.6", KERNEL,
    }  # fmt: skip


def test_the_mark_that_ends_a_threads_stack_is_no_function() -> None:
    samples, _ = read("driver.txt")
    assert [names(sample)[-1] for sample in samples] == ["clone3"] * 3
    kernel = KernelSymbols(KALLSYMS.splitlines())
    lines = [
        " 1/1 2.000000: 7 ",
        "\tf82ad read (/lib/a.so)",
        "\tffffffffffffffff [unknown] ([unknown])",
    ]
    (sample,) = read_samples(lines, Script(), kernel)
    assert names(sample) == ["read"]
