"""Values of the machine that the kernel moves together: planned, made in an order, put back."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.api.machine import Planned
from pgdyno.host.change import apply, commands, commands_back, plan, unmet
from pgdyno.host.knob_location import knob_location
from pgdyno.host.undo import Resolutions
from pgdyno.host.undo import restore as restore_all
from pgdyno.model.errors import PlanError, TargetError
from tests.data.killed import run_killed
from tests.unit.host.test_host_change import BOOT, journal, restore, standing, state

SCHEDULER, REQUESTS = "queue/scheduler@vda", "queue/nr_requests@vda"


def excludes(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that sets the ratio to 0 when bytes are written, and the other way round."""
    folder = tree / "proc/sys/vm"
    write = Path.write_text

    def kernel(path: Path, text: str, **options: object) -> int:
        pair = {"dirty_background_bytes", "dirty_background_ratio"}
        if path.name in pair:
            (other,) = pair - {path.name}
            if (path.name, text) == ("dirty_background_bytes", "0\n"):
                raise OSError(22, "Invalid argument")
            write(folder / other, "0\n")
        return write(path, text, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", kernel)


@pytest.mark.parametrize(
    "wishes",
    [
        (("vm.dirty_background_bytes", "67108864"), ("vm.dirty_background_ratio", "0")),
        (("vm.dirty_background_ratio", "0"), ("vm.dirty_background_bytes", "67108864")),
        (("vm.dirty_background_bytes", "0"), ("vm.dirty_background_ratio", "5")),
    ],
)
def test_of_two_values_that_exclude_each_other_one_may_be_asked_to_be_0(
    tree: Path, monkeypatch: pytest.MonkeyPatch, wishes: tuple[tuple[str, str], ...]
) -> None:
    """As of a stage that inherits the other one. A kill at any step is mended, too."""
    excludes(tree, monkeypatch)
    before = state(tree)
    changes = plan(wishes, tree)
    apply(changes, journal(tree), root=tree)
    assert unmet(wishes, tree) == ()
    (command,) = commands(changes, tree)
    assert not command.startswith("echo 0 ")
    assert len(restore(journal(tree), root=tree)) == 1
    assert state(tree) == before

    step = 1
    while run_killed(step, wishes, journal(tree).path, boot=BOOT, root=tree):
        assert all(one.ok for one in restore(journal(tree), root=tree)), step
        assert state(tree) == before, step
        step += 1
    assert step > 7, "journal, write, read, keep; undo, back, undone"


@pytest.mark.parametrize("ratio", ["5", "10"])
def test_of_two_values_that_exclude_each_other_not_both_are_set(tree: Path, ratio: str) -> None:
    wishes = [("vm.dirty_background_bytes", "67108864"), ("vm.dirty_background_ratio", ratio)]
    with pytest.raises(PlanError) as caught:
        plan(wishes, tree)
    assert caught.value.fact == (
        f"vm.dirty_background_bytes is to be '67108864' and vm.dirty_background_ratio '{ratio}',"
        " of which either sets the other to 0"
    )


def test_of_two_values_that_exclude_each_other_the_one_that_counted_comes_back(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    excludes(tree, monkeypatch)
    before = state(tree)
    changes = plan([("vm.dirty_background_bytes", "67108864")], tree)
    assert commands_back(changes, tree) == [
        "echo 10 | sudo tee /proc/sys/vm/dirty_background_ratio"
    ]
    apply(changes, journal(tree), root=tree)
    assert knob_location("vm.dirty_background_ratio", tree).read() == "0"
    restore(journal(tree), root=tree)
    assert state(tree) == before


def resets_requests(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel whose schedulers each begin with a number of requests of their own."""
    write = Path.write_text

    def kernel(path: Path, text: str, **options: object) -> int:
        if path.name == "scheduler":
            requests = {"none": "1023", "mq-deadline": "64"}[text.strip()]
            write(tree / "sys/block/vda/queue/nr_requests", f"{requests}\n")
            words = path.read_text().replace("[", "").replace("]", "")
            text = words.replace(text.strip(), f"[{text.strip()}]", 1)
        return write(path, text, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", kernel)


@pytest.mark.parametrize("requests", ["512", "256", "1023"])
@pytest.mark.parametrize("scheduler_first", [True, False])
def test_what_the_kernel_moves_is_set_after_what_moves_it(
    tree: Path, monkeypatch: pytest.MonkeyPatch, scheduler_first: bool, requests: str
) -> None:
    """Also what is so already, 256, and what the kernel makes so by itself, 1023."""
    resets_requests(tree, monkeypatch)
    before = state(tree)
    wishes = [(SCHEDULER, "none"), (REQUESTS, requests)][:: 1 if scheduler_first else -1]

    changes = plan(wishes, tree)
    assert [one.key for one in changes] == [SCHEDULER, REQUESTS]
    assert commands(changes, tree) == [
        "echo none | sudo tee /sys/block/vda/queue/scheduler",
        f"echo {requests} | sudo tee /sys/block/vda/queue/nr_requests",
    ]
    apply(changes, journal(tree), root=tree)

    assert knob_location(SCHEDULER, tree).read() == "none"
    assert knob_location(REQUESTS, tree).read() == requests
    assert all(one.ok for one in restore(journal(tree), root=tree))
    assert state(tree) == before


def test_what_is_so_already_is_not_written_though_another_might_have_moved_it(tree: Path) -> None:
    changes = plan([(REQUESTS, "256"), (SCHEDULER, "none")], tree)
    assert [(one.key, one.differs) for one in changes] == [(SCHEDULER, True), (REQUESTS, False)]
    rows = Planned(((REQUESTS, "256"), (SCHEDULER, "none")), changes, ()).rows
    assert [(one.key, one.then) for one in rows] == [(REQUESTS, None), (SCHEDULER, "none")]
    made = apply(changes, journal(tree), root=tree)  # of a kernel that moves nothing
    assert [one.change.key for one in made] == [SCHEDULER]


def test_what_a_later_change_moves_though_nothing_was_known_of_it_is_refused(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def kernel(path: Path, text: str, **options: object) -> int:
        if path.name == "swappiness":
            write(tree / "proc/sys/vm/nr_hugepages", "1\n" if text == "60\n" else "7\n")
        return write(path, text, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", kernel)
    with pytest.raises(TargetError) as caught:
        apply(plan([("vm.nr_hugepages", "1"), ("vm.swappiness", "1")], tree), journal(tree),
              root=tree)  # fmt: skip
    assert caught.value.fact == "vm.nr_hugepages is to be '1' and is '7' once all were set"
    assert standing(journal(tree)) == []
    assert knob_location("vm.swappiness", tree).read() == "60"
    assert knob_location("vm.nr_hugepages", tree).read() == "0"


def test_what_changed_beside_a_value_since_it_was_planned_is_not_touched(tree: Path) -> None:
    changes = plan([(SCHEDULER, "none")], tree)
    knob_location(REQUESTS, tree).write("99")
    with pytest.raises(TargetError, match=r"queue/nr_requests@vda is '99', and was '256' when"):
        apply(changes, journal(tree), root=tree)
    assert knob_location(SCHEDULER, tree).read() == "mq-deadline"
    assert knob_location(REQUESTS, tree).read() == "99"


def moves_memory(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that sets how much memory it keeps free by how huge pages are used."""
    (tree / "proc/sys/vm/min_free_kbytes").write_text("45056\n")
    write = Path.write_text

    def kernel(path: Path, text: str, **options: object) -> int:
        if path.parent.name == "transparent_hugepage":
            kept = {"always": "45056", "never": "8192"}.get(text.strip(), "11000")
            write(tree / "proc/sys/vm/min_free_kbytes", f"{kept}\n")
            words = path.read_text().replace("[", "").replace("]", "")
            text = words.replace(text.strip(), f"[{text.strip()}]", 1)
        return write(path, text, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", kernel)


def test_what_somebody_else_changed_beside_a_value_is_left(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves_memory(tree, monkeypatch)
    thp, kept = (
        knob_location(key, tree) for key in ("transparent_hugepage/enabled", "vm.min_free_kbytes")
    )
    kept.write("67584")
    apply(plan([(thp.key, "never")], tree), journal(tree), root=tree)
    assert kept.read() == "8192", "the kernel moved it"
    kept.write("99999")
    (one,) = restore(journal(tree), root=tree)
    assert one.fate == (
        "left: vm.min_free_kbytes, which it moves, is '99999' now; that had made it '8192', and"
        " before it was '67584'"
    )
    assert (thp.read(), kept.read()) == ("always", "99999")
    assert not restore(journal(tree), root=tree)[0].ok
    assert kept.read() == "99999"
    assert (
        restore(journal(tree), root=tree, resolutions=Resolutions((thp.key,)))[0].fate == "restored"
    )
    assert (thp.read(), kept.read()) == ("always", "67584")


def test_a_kill_between_two_values_is_mended(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel moved the second one again while the first was put back."""
    moves_memory(tree, monkeypatch)
    knob_location("vm.min_free_kbytes", tree).write("67584")
    before = state(tree)
    apply(plan([("transparent_hugepage/enabled", "never")], tree), journal(tree), root=tree)

    def killed(step: str) -> None:
        if step == "back vm.min_free_kbytes":
            raise InterruptedError

    with pytest.raises(InterruptedError):
        restore_all([journal(tree)], killed, tree)
    assert knob_location("vm.min_free_kbytes", tree).read() == "45056"
    assert restore(journal(tree), root=tree)[0].fate == "restored"
    assert state(tree) == before
