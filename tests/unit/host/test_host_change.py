"""Changes of a machine made of files: planned, made, undone, also after a kill at any step."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.host.change import apply, commands, commands_back, may_write, parse, plan
from pgdyno.host.journal import Change, Journal
from pgdyno.host.knob_location import knob_location, knob_locations
from pgdyno.host.undo import Resolutions, Undone
from pgdyno.host.undo import restore as restore_all
from pgdyno.model.errors import MachineError, PlanError, TargetError
from tests.data.killed import run_killed

BOOT = "7f0c"
WISHES = [
    ("vm.swappiness", "1"),
    ("vm.dirty_background_ratio", "5"),
    ("queue/read_ahead_kb@vda", "64"),
    ("scaling_governor@policy1", "performance"),
]


def journal(tree: Path, boot: str = BOOT) -> Journal:
    return Journal(tree.parent / "journal.jsonl", boot)


NOTHING = Resolutions()


def restore(book: Journal, root: Path, resolutions: Resolutions = NOTHING) -> tuple[Undone, ...]:
    return restore_all([book], root=root, resolutions=resolutions)


def standing(book: Journal) -> list[str]:
    with book.locked():
        return [one.change.key for one in book.standing()]


def state(tree: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def test_a_location_is_found_by_its_key(tree: Path) -> None:
    assert knob_location("vm.swappiness", tree).read() == "60"
    assert knob_location("net.ipv4.tcp_rmem", tree).read() == "4096 131072 6291456"
    thp = knob_location("transparent_hugepage/enabled", tree)
    assert (thp.read(), thp.choices()) == ("always", ("always", "madvise", "never"))
    assert knob_location("queue/scheduler@vda", tree).read() == "mq-deadline"
    assert (
        knob_location("rps_cpus@eth0:1", tree).shown_path
        == "/sys/class/net/eth0/queues/rx-1/rps_cpus"
    )
    assert knob_location("scaling_governor@policy1", tree).shown_path.endswith(
        "policy1/scaling_governor"
    )


def test_all_locations_of_a_machine(tree: Path) -> None:
    keys = {one.key for one in knob_locations(tree)}
    assert {"vm.swappiness", "queue/scheduler@vda", "scaling_governor@policy0"} <= keys
    assert {"rps_cpus@eth0:0", "rps_cpus@eth0:1", "xps_cpus@eth0:0", "mtu@eth0"} <= keys
    assert not any("ifb0" in key for key in keys), "it is down and of no hardware"
    assert not any("loop0" in key or "ram0" in key for key in keys), "nothing lies on them"


@pytest.mark.parametrize(
    ("wish", "fact"),
    [
        ("vm.swapiness=1", "no knob of the machine is called 'vm.swapiness'"),
        ("vm.swappiness=300", "vm.swappiness is 300, allowed are 0 to 200"),
        ("vm.swappiness=low", "vm.swappiness is 'low', expected a number"),
        ("vm.swappiness@vda=1", "vm.swappiness is set for the whole machine, not for vda"),
        ("queue/scheduler=none", "queue/scheduler is set for one device"),
        ("queue/scheduler@../../x=none", "'../../x' is not a name of a device"),
        ("queue/scheduler@vda=cfq", "queue/scheduler@vda is 'cfq', allowed are none, mq-deadline,"),
        ("transparent_hugepage/enabled=on", "transparent_hugepage/enabled is 'on', allowed are"),
        ("vm.zone_reclaim_mode=0", "this machine has no /proc/sys/vm/zone_reclaim_mode"),
        ("queue/atomic_write_unit_max_bytes@vda=8192", "can only be read"),
        ("mitigations=off", "mitigations is of layer boot, and not in a file of the"),
        ("ext4 barrier=0", "ext4 barrier is of layer mount, and not in a file of the"),
        ("irqbalance=on", "irqbalance is of layer interrupts, and not in a file of the"),
        ("rps_cpus@eth0:0=cpu1", "rps_cpus@eth0:0 is 'cpu1', expected CPUs as a hexadecimal mask"),
        ("rps_cpus@eth0=1", "rps_cpus is set for a queue, not for eth0"),
        ("mtu@eth0:0=1500", "mtu is set for a whole device, not for eth0:0"),
        ("shared_buffers=1GB", "no knob of the machine is called 'shared_buffers'"),
    ],
)
def test_a_wish_that_cannot_be_is_refused(tree: Path, wish: str, fact: str) -> None:
    before = state(tree)
    with pytest.raises(PlanError) as caught:
        plan([parse(wish)], tree)
    assert fact in caught.value.fact
    assert state(tree) == before


@pytest.mark.parametrize("wish", ["vm.swappiness", "=1", "vm.swappiness=", ""])
def test_a_wish_has_a_name_and_a_value(wish: str) -> None:
    with pytest.raises(PlanError, match="is not NAME=VALUE"):
        parse(wish)


def test_one_knob_cannot_have_two_values(tree: Path) -> None:
    with pytest.raises(PlanError, match="is to be '1' and '2'"):
        plan([("vm.swappiness", "1"), ("vm.swappiness", "2")], tree)


def test_only_what_differs_is_planned(tree: Path) -> None:
    changes = plan([("vm.swappiness", "60"), ("kernel.numa_balancing", "0")], tree)
    assert changes == (Change("kernel.numa_balancing", "1", "0"),)
    assert commands(changes, tree) == ["echo 0 | sudo tee /proc/sys/kernel/numa_balancing"]
    assert commands_back(changes, tree) == ["echo 1 | sudo tee /proc/sys/kernel/numa_balancing"]
    assert may_write(changes, tree)


def test_a_wrong_name_is_answered_with_the_right_one(tree: Path) -> None:
    for name, hint in (("vm.swapiness", "vm.swappiness"), ("shared_buffers", "of the server")):
        with pytest.raises(PlanError) as caught:
            plan([(name, "1")], tree)
        assert hint in (caught.value.hint or "")


def test_more_memory_than_the_machine_can_spare_is_refused(tree: Path) -> None:
    (tree / "proc/sys/vm/min_free_kbytes").write_text("67584\n")
    for wish, fact in (
        (("vm.nr_hugepages", "4000"), "4000 huge pages are 7.81 GiB, the machine has 8.00 GiB"),
        (("vm.min_free_kbytes", "4194304"), "4.00 GiB of 8.00 GiB are kept from use"),
    ):
        with pytest.raises(PlanError, match=fact):
            plan([("vm.swappiness", "10"), wish], tree)


def test_masks_of_cpus_have_one_spelling(tree: Path) -> None:
    one = knob_location("rps_cpus@eth0:0", tree)
    one.path.write_text("00000000,0000000f\n")
    assert one.read() == "f"
    assert plan([("rps_cpus@eth0:0", "000F")], tree) == ()
    (change,) = plan([("rps_cpus@eth0:0", "1ffffffff")], tree)
    assert (change.before, change.after) == ("f", "1,ffffffff")


def test_apply_and_restore_leave_every_file_as_it_was(tree: Path) -> None:
    before = state(tree)
    apply(plan(WISHES, tree), journal(tree), root=tree)
    assert knob_location("vm.swappiness", tree).read() == "1"
    assert knob_location("queue/read_ahead_kb@vda", tree).read() == "64"

    undone = restore(journal(tree), root=tree)

    assert [one.fate for one in undone] == ["restored"] * len(WISHES)
    assert [one.change.key for one in undone] == [key for key, _ in reversed(WISHES)]
    assert state(tree) == before
    assert restore(journal(tree), root=tree) == (), "nothing stands any more"


def test_two_applies_are_undone_in_reverse(tree: Path) -> None:
    before = state(tree)
    for value in ("10", "5", "1"):
        apply(plan([("vm.swappiness", value)], tree), journal(tree), root=tree)
    assert [one.fate for one in restore(journal(tree), root=tree)] == ["restored"] * 3
    assert state(tree) == before


def test_a_kill_at_any_step_is_mended(tree: Path) -> None:
    before = state(tree)
    step = 1
    while run_killed(step, WISHES, journal(tree).path, boot=BOOT, root=tree):
        undone = restore(journal(tree), root=tree)
        assert all(one.ok for one in undone), step
        assert state(tree) == before, step
        step += 1
    assert state(tree) == before
    assert step > 7 * len(WISHES), "journal, write, read, keep; undo, back, undone"


def test_a_line_cut_by_a_kill_is_dropped(tree: Path) -> None:
    before = state(tree)
    book = journal(tree)
    apply(plan(WISHES[:1], tree), book, root=tree)
    with book.path.open("a") as handle:
        handle.write('{"what": "intend", "num')
    apply(plan(WISHES[2:3], tree), book, root=tree)
    assert len(restore(book, root=tree)) == 2
    assert state(tree) == before


def test_a_damaged_journal_is_an_error(tree: Path) -> None:
    journal(tree).path.write_text("what?\n")
    with pytest.raises(TargetError, match="is damaged"):
        restore(journal(tree), root=tree)


def test_what_somebody_else_changed_since_is_left_and_said(tree: Path) -> None:
    apply(plan(WISHES[:1], tree), journal(tree), root=tree)
    knob_location("vm.swappiness", tree).path.write_text("77\n")
    (one,) = restore(journal(tree), root=tree)
    assert not one.ok
    assert one.fate == "left: it is '77' now, pgdyno had made it '1' of '60'"
    assert one.line == f"vm.swappiness: {one.fate}", "it is not 60"
    assert knob_location("vm.swappiness", tree).read() == "77"
    knob_location("vm.swappiness", tree).path.write_text("1\n")
    (one,) = restore(journal(tree), root=tree)
    assert one.line == "vm.swappiness: 60: restored", "it is still in the journal"


def test_a_value_between_ours_and_the_one_before_is_somebody_elses(tree: Path) -> None:
    """No guess at what the kernel may have rounded: what it made was read back and kept."""
    apply(plan(WISHES[:1], tree), journal(tree), root=tree)
    knob_location("vm.swappiness", tree).write("30")
    (one,) = restore(journal(tree), root=tree)
    assert one.fate == "left: it is '30' now, pgdyno had made it '1' of '60'"
    assert knob_location("vm.swappiness", tree).read() == "30"


def test_what_is_left_may_be_overwritten_or_kept_by_name(tree: Path) -> None:
    for will, value, fate in (
        (Resolutions(overwrite=("vm.swappiness",)), "60", "restored"),
        (Resolutions(keep=("vm.swappiness",)), "30", "kept as it is"),
    ):
        apply(plan(WISHES[:1], tree), journal(tree), root=tree)
        knob_location("vm.swappiness", tree).write("30")
        assert not restore(journal(tree), root=tree)[0].ok
        (one,) = restore(journal(tree), root=tree, resolutions=will)
        assert (one.ok, one.fate) == (True, fate)
        assert knob_location("vm.swappiness", tree).read() == value
        assert standing(journal(tree)) == []
    with pytest.raises(PlanError, match=r"nothing is changed of vm.swappiness"):
        restore(journal(tree), root=tree, resolutions=Resolutions(keep=("vm.swappiness",)))
    with pytest.raises(PlanError, match=r"vm.swappiness is to be overwritten and kept"):
        restore(
            journal(tree),
            root=tree,
            resolutions=Resolutions(("vm.swappiness",), ("vm.swappiness",)),
        )


def test_a_second_apply_over_somebody_elses_value_comes_back_to_that(tree: Path) -> None:
    apply(plan(WISHES[:1], tree), journal(tree), root=tree)
    knob_location("vm.swappiness", tree).write("30")
    apply(plan(WISHES[:1], tree), journal(tree), root=tree)
    assert [one.fate for one in restore(journal(tree), root=tree)] == [
        "restored", "left: it is '30' now, pgdyno had made it '1' of '60'",
    ]  # fmt: skip
    assert knob_location("vm.swappiness", tree).read() == "30"


def test_two_journals_undo_only_what_is_theirs(tree: Path) -> None:
    before = state(tree)
    one, two = journal(tree), Journal(tree.parent / "second.jsonl", BOOT)
    apply(plan([("vm.swappiness", "10")], tree), one, root=tree)
    apply(plan([("vm.swappiness", "5")], tree), two, root=tree)
    assert restore(one, root=tree)[0].fate == (
        "left: it is '5' now, pgdyno had made it '10' of '60'"
    )
    assert knob_location("vm.swappiness", tree).read() == "5"
    assert restore(two, root=tree)[0].fate == "restored"
    assert restore(one, root=tree)[0].fate == "restored"
    assert state(tree) == before


def test_a_value_that_changed_since_it_was_planned_is_not_touched(tree: Path) -> None:
    changes = plan(WISHES[:1], tree)
    knob_location("vm.swappiness", tree).write("30")
    with pytest.raises(TargetError, match=r"vm.swappiness is '30', and was '60' when"):
        apply(changes, journal(tree), root=tree)
    assert knob_location("vm.swappiness", tree).read() == "30"


def test_one_that_cannot_be_undone_does_not_keep_the_others(tree: Path) -> None:
    before = state(tree)
    apply(plan([*WISHES[2:3], *WISHES[:1]], tree), journal(tree), root=tree)
    book = journal(tree)
    with book.locked():
        book.intend(Change("vm.of_another_version", "1", "2"))
    first, *others = restore(journal(tree), root=tree)
    assert first.fate == "left: no knob of the machine is called 'vm.of_another_version'"
    assert [one.fate for one in others] == ["restored"] * 2
    assert state(tree) == before


def test_a_reboot_undoes_by_itself(tree: Path) -> None:
    apply(plan(WISHES[:1], tree), journal(tree), root=tree)
    knob_location("vm.swappiness", tree).path.write_text("30\n")  # by /etc/sysctl.d at the start
    (one,) = restore(journal(tree, "another"), root=tree)
    assert (one.ok, one.fate) == (True, "gone by a reboot")
    assert knob_location("vm.swappiness", tree).read() == "30"


def test_a_refusal_puts_back_what_was_changed_before(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(tree)
    write = Path.write_text

    def refuse(path: Path, text: str, **options: object) -> int:
        if path.name == "read_ahead_kb" and text == "64\n":
            raise OSError(22, "Invalid argument")
        return write(path, text, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(TargetError, match=r"write '64' to .*read_ahead_kb: invalid argument"):
        apply(plan(WISHES, tree), journal(tree), root=tree)
    assert state(tree) == before
    assert standing(journal(tree)) == []


def test_a_refusal_after_which_one_cannot_be_put_back_says_what_stands(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def refuse(path: Path, text: str, **options: object) -> int:
        if (path.name, text) in (("read_ahead_kb", "64\n"), ("swappiness", "60\n")):
            raise OSError(22, "Invalid argument")
        return write(path, text, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", refuse)
        with pytest.raises(MachineError) as caught:
            apply(plan(WISHES, tree), journal(tree), root=tree)
    assert "could be put back: vm.swappiness left: cannot write '60'" in caught.value.fact
    assert standing(journal(tree)) == ["vm.swappiness"]
    assert [one.fate for one in restore(journal(tree), root=tree)] == ["restored"]


def test_a_refusal_leaves_what_an_earlier_apply_changed(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(tree)
    apply(plan([("kernel.numa_balancing", "0")], tree), journal(tree), root=tree)
    write = Path.write_text

    def refuse(path: Path, text: str, **options: object) -> int:
        if path.name == "swappiness" and text == "1\n":
            raise OSError(22, "Invalid argument")
        return write(path, text, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(TargetError):
        apply(plan([("vm.swappiness", "1")], tree), journal(tree), root=tree)
    assert knob_location("kernel.numa_balancing", tree).read() == "0"
    assert len(restore(journal(tree), root=tree)) == 1
    assert state(tree) == before


def test_a_value_that_the_kernel_makes_another_one_of_is_put_back(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(tree)
    write = Path.write_text

    def fewer(path: Path, text: str, **options: object) -> int:
        found = "40\n" if path.name == "nr_hugepages" and text == "100\n" else text
        return write(path, found, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", fewer)
    with pytest.raises(TargetError, match=r"was set to '100' and is '40'") as caught:
        apply(plan([("vm.nr_hugepages", "100")], tree), journal(tree), root=tree)
    assert "drop_caches" in (caught.value.hint or "")
    assert state(tree) == before


def test_what_the_kernel_made_of_a_value_is_ours_after_a_kill(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(tree)
    write = Path.write_text

    def fewer(path: Path, text: str, **options: object) -> int:
        found = "40\n" if path.name == "nr_hugepages" and text == "100\n" else text
        return write(path, found, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", fewer)
    (change,) = plan([("vm.nr_hugepages", "100")], tree)
    book = journal(tree)
    with book.locked():  # as a kill leaves it that comes before all is put back
        standing = book.intend(change)
        knob_location(change.key, tree).write(change.after)
        book.done(replace(standing, became="40"))
    assert restore(journal(tree), root=tree)[0].fate == "restored"
    assert state(tree) == before


def test_a_journal_that_cannot_be_written_forbids_changes(tree: Path) -> None:
    before = state(tree)
    book = Journal(tree / "proc/sys/vm/swappiness/journal", BOOT)  # below a file
    with pytest.raises(TargetError, match="write the journal"):
        apply(plan(WISHES, tree), book, root=tree)
    assert state(tree) == before


def test_two_processes_do_not_change_at_once(tree: Path) -> None:
    hasty = Journal(journal(tree).path, BOOT, patience_s=0)
    with journal(tree).locked(), pytest.raises(TargetError, match="another pgdyno is changing"):
        apply(plan(WISHES, tree), hasty, root=tree)


def test_the_journal_tells_what_and_when(tree: Path) -> None:
    apply(plan(WISHES[:1], tree), journal(tree), root=tree)
    lines = [json.loads(line) for line in journal(tree).path.read_text().splitlines()]
    assert [line["what"] for line in lines] == ["intend", "done"]
    assert [line["became"] for line in lines] == [None, "1"]
    assert lines[0]["change"] == {
        "key": "vm.swappiness", "before": "60", "after": "1", "also": []
    }  # fmt: skip
    assert lines[0]["boot"] == BOOT
