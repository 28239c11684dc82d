"""Run files of experiments that end early: kept where something was measured, else gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.api.storing import Begun, begun, stored
from pgdyno.model.errors import Interrupted, StoreError, TargetError
from pgdyno.model.floor import QUICK, Clock, Probed
from pgdyno.store.run_file import RunFile

PROBED = Probed("1-storage", 1, "0", {}, 2, QUICK, Clock(20.0, ()))
FAILURES = (TargetError("fio ended with code 1"), KeyboardInterrupt(), ZeroDivisionError())


@pytest.fixture
def new(tmp_path: Path) -> Begun:
    return begun("storage", "storage", "pgdyno storage", tmp_path / "s.sqlite", data=tmp_path)


def end(new: Begun, error: BaseException, *, keeps: int, announced: bool = True) -> BaseException:
    """How it ends when this comes after so much was kept."""
    try:
        with stored(new, announced=announced) as keep:
            for _ in range(keeps):
                keep(PROBED)
            raise error
    except BaseException as told:  # whatever it is
        return told


@pytest.mark.parametrize("error", FAILURES)
@pytest.mark.parametrize("keeps", [0, 1])
def test_a_file_in_which_nothing_was_measured_goes(
    new: Begun, error: BaseException, keeps: int
) -> None:
    told = end(new, error, keeps=keeps)

    assert list(new.path.parent.iterdir()) == []
    if isinstance(error, KeyboardInterrupt):
        assert isinstance(told, Interrupted)
        assert told.fact == "stopped before anything was measured"
        assert told.hint == "Nothing is left of it."
    with stored(new) as keep:  # its name is free
        keep(PROBED)


@pytest.mark.parametrize("error", FAILURES)
@pytest.mark.parametrize(("keeps", "announced"), [(2, True), (1, False)])
def test_what_was_measured_is_kept_and_told(
    new: Begun, error: BaseException, keeps: int, announced: bool
) -> None:
    told = end(new, error, keeps=keeps, announced=announced)

    with RunFile.read(new.path) as run:
        assert run.found("storage", Probed) == PROBED
    said = f"{getattr(told, 'hint', '')} {' '.join(getattr(told, '__notes__', ()))}"
    if not isinstance(error, ZeroDivisionError):  # a defect, which tells itself
        assert f"`pgdyno resume {new.path}`" in said


def test_a_run_that_is_resumed_is_kept(new: Begun) -> None:
    end(new, FAILURES[0], keeps=2)

    end(Begun(new.path, new.info, is_new=False), FAILURES[0], keeps=0)

    assert new.path.exists()


def test_a_file_of_others_is_left(new: Begun) -> None:
    new.path.write_text("theirs")
    with pytest.raises(StoreError, match="exists"), stored(new):
        pytest.fail("it would be written over")
    new.path.unlink()

    def exchanged() -> None:
        with stored(new):
            new.path.unlink()
            new.path.write_text("theirs")
            raise FAILURES[0]

    with pytest.raises(TargetError):
        exchanged()
    assert new.path.read_text() == "theirs"
