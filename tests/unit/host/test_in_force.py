"""Settings that are in force for a while, on a machine made of files: put back in any case."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from pgdyno.host.change import apply, plan
from pgdyno.host.in_force import in_force, require_none_standing
from pgdyno.host.journal import Journal
from pgdyno.host.knob_location import knob_location
from pgdyno.host.undo import restore
from pgdyno.model.errors import MachineError, PlanError, TargetError
from tests.unit.host.test_host_change import BOOT, journal, standing, state

ASKED = (("vm.swappiness", "1"), ("vm.dirty_background_bytes", "67108864"))


def values(tree: Path) -> list[str]:
    return [knob_location(key, tree).read() for key, _ in ASKED]


def test_they_hold_meanwhile_and_are_put_back(tree: Path) -> None:
    before = state(tree)

    with in_force(ASKED, [journal(tree)], tree):
        assert values(tree) == ["1", "67108864"]
        assert standing(journal(tree)) == [key for key, _ in ASKED][::-1]

    assert state(tree) == before
    assert standing(journal(tree)) == []


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, TargetError])
def test_they_are_put_back_whatever_happens(tree: Path, error: type[BaseException]) -> None:
    before = state(tree)
    with pytest.raises(error), in_force(ASKED, [journal(tree)], tree):
        raise error("broken off")
    assert state(tree) == before


def test_what_the_machine_has_already_is_left_to_whoever_made_it_so(tree: Path) -> None:
    """It was not so to the end, though, and whoever measured has to know."""
    with (
        pytest.raises(TargetError, match=r"vm\.swappiness is '10', and was to be '60'"),
        in_force([("vm.swappiness", "60")], [journal(tree)], tree),
    ):
        knob_location("vm.swappiness", tree).write("10")
    assert knob_location("vm.swappiness", tree).read() == "10"


def test_what_somebody_else_changed_meanwhile_stays_and_is_said(tree: Path) -> None:
    with (
        pytest.raises(
            MachineError, match="not all settings of this machine could be put back"
        ) as it,
        in_force(ASKED, [journal(tree)], tree),
    ):
        knob_location("vm.swappiness", tree).write("30")
    assert "vm.swappiness left: it is '30' now" in it.value.fact
    assert values(tree) == ["30", "0"]


def test_what_is_so_already_and_is_moved_by_a_change_is_not_taken_for_in_force(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is known of it, so that it was not made so again."""
    write = Path.write_text

    def kernel(path: Path, text: str, **options: object) -> int:
        if path.name == "swappiness":
            write(tree / "proc/sys/kernel/numa_balancing", "1\n" if text == "60\n" else "0\n")
        return write(path, text, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", kernel)
    before = state(tree)
    asked = [("kernel.numa_balancing", "1"), ("vm.swappiness", "1")]
    told = r"not in force together: kernel\.numa_balancing is '0', and was to be '1'"
    with pytest.raises(TargetError, match=told), in_force(asked, [journal(tree)], tree):
        raise AssertionError("nothing may begin")
    assert state(tree) == before


def by_hand(tree: Path) -> None:
    knob_location("vm.swappiness", tree).write("60")


def by_pgdyno(tree: Path) -> None:
    """As the hint of a refusal has it, in a second shell."""
    assert all(one.ok for one in restore([journal(tree)], root=tree))


def by_pgdyno_for_another(tree: Path) -> None:
    """Who wants the same value, and puts it back as well."""
    by_pgdyno(tree)
    apply(plan(ASKED, tree), journal(tree), root=tree)


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize(
    ("take", "words", "left"),
    [
        (by_hand, ["vm.swappiness is '60', and was to be '1'"], ["60", "0"]),
        (by_pgdyno, ["vm.swappiness is '60', and", "dirty_background_bytes is '0', and"],
         ["60", "0"]),
        (by_pgdyno_for_another, ["took back vm.swappiness; another pgdyno took back vm.dirty_"],
         ["1", "67108864"]),
    ],
)  # fmt: skip
def test_what_is_taken_away_before_the_end_is_noticed(
    tree: Path, take: Callable[[Path], None], words: list[str], left: list[str], asks: bool
) -> None:
    """What was measured meanwhile was measured without it; who asks hears of it at once."""

    def measure() -> None:
        with in_force(ASKED, [journal(tree)], tree) as require:
            require()
            take(tree)
            if asks:
                require()
                raise AssertionError("it was taken away")

    with pytest.raises(TargetError) as it:
        measure()

    assert not isinstance(it.value, MachineError)
    assert it.value.fact.startswith("not in force all the time: ")
    assert all(one in it.value.fact for one in words)
    assert values(tree) == left
    restore([journal(tree)], root=tree)
    assert values(tree) == ["60", "0"]


def test_an_error_stays_the_error_though_something_was_taken_away(tree: Path) -> None:
    def drive() -> None:
        with in_force(ASKED, [journal(tree)], tree):
            by_pgdyno(tree)
            raise RuntimeError("broken off")

    with pytest.raises(RuntimeError):
        drive()
    assert values(tree) == ["60", "0"]


@contextmanager
def another_at_work(book: Journal) -> Iterator[Callable[[], None]]:
    """Another process has the journal, until it ends what it does."""
    handle = os.open(book.path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield lambda: fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def test_another_pgdyno_at_work_for_a_moment_is_waited_for(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(tree)
    waited: list[float] = []
    others: list[Callable[[], None]] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        others[-1]()

    monkeypatch.setattr("time.sleep", sleep)
    with ExitStack() as held:
        with another_at_work(journal(tree)) as end:
            others.append(end)
            held.enter_context(in_force(ASKED, [journal(tree)], tree))
        assert values(tree) == ["1", "67108864"]
        with another_at_work(journal(tree)) as end:
            others.append(end)
            held.close()

    assert state(tree) == before
    assert standing(journal(tree)) == []
    assert len(waited) == 2


@pytest.mark.parametrize("why", ["was waited for 0 s", "stopped"])
def test_one_that_does_not_end_leaves_what_stands_and_says_so(
    tree: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """So does Ctrl-C while it is waited for: the load's own error is not the one that counts."""

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupted)
    patience_s = 60.0 if why == "stopped" else 0.0
    book = Journal(journal(tree).path, BOOT, patience_s=patience_s)

    def drive() -> None:
        with ExitStack() as other, in_force(ASKED, [book], tree):
            other.enter_context(another_at_work(book))
            raise TargetError("no room")

    with pytest.raises(MachineError) as it:
        drive()
    names = "vm.swappiness and vm.dirty_background_bytes"
    assert it.value.fact.startswith(f"{names} may still stand changed on this machine: ")
    assert why in it.value.fact
    assert "pgdyno host restore" in str(it.value.hint)
    assert values(tree) == ["1", "67108864"]
    assert [one.fate for one in restore([journal(tree)], root=tree)] == ["restored"] * 2


def test_what_a_killed_run_left_is_not_taken_for_the_machine(tree: Path) -> None:
    apply(plan(ASKED, tree), journal(tree), root=tree)

    with (
        pytest.raises(TargetError, match=r"pgdyno has changed vm\.swappiness on this machine"),
        in_force([("vm.swappiness", "5")], [journal(tree)], tree),
    ):
        raise AssertionError("nothing may begin")
    require_none_standing(["queue/scheduler@vda"], [journal(tree)])
    earlier = Journal(tree.parent / "none.jsonl", BOOT, earlier=True)
    require_none_standing(["vm.swappiness"], [earlier])


@pytest.mark.parametrize(
    ("stands", "asked"),
    [
        (("vm.dirty_background_bytes", "67108864"), ("vm.dirty_background_ratio", "5")),
        (("queue/scheduler@vda", "none"), ("queue/nr_requests@vda", "64")),
        (("queue/nr_requests@vda", "64"), ("queue/scheduler@vda", "none")),
    ],
)
def test_what_moves_together_with_a_change_that_stands_is_refused(
    tree: Path, stands: tuple[str, str], asked: tuple[str, str]
) -> None:
    """Else whoever ends first takes the other one's value, and that stands in the end."""
    apply(plan([stands], tree), journal(tree), root=tree)
    changed = state(tree)

    with pytest.raises(TargetError) as it, in_force([asked], [journal(tree)], tree):
        raise AssertionError("nothing may begin")

    assert it.value.fact == (
        f"pgdyno has changed {stands[0]} on this machine, and not put it back;"
        f" the kernel moves {asked[0]} with {stands[0]}"
    )
    assert state(tree) == changed
    require_none_standing(["queue/nr_requests@vdb", "vm.dirty_bytes"], [journal(tree)])
    assert [one.fate for one in restore([journal(tree)], root=tree)] == ["restored"]


def test_what_the_machine_does_not_take_is_refused_before_anything_is_changed(tree: Path) -> None:
    before = state(tree)
    with (
        pytest.raises(PlanError, match="allowed are 0 to 200"),
        in_force([ASKED[1], ("vm.swappiness", "300")], [journal(tree)], tree),
    ):
        raise AssertionError("nothing may begin")
    assert state(tree) == before
