"""Run files of experiments without trials: begun, kept after each step, resumed, reported."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.api.runs import Run, named_now, reported
from pgdyno.model.errors import Interrupted, PgdynoError
from pgdyno.model.manifest import Installation
from pgdyno.model.run import RunInfo
from pgdyno.plan.same_machine import require_same
from pgdyno.store.output_file import require_page
from pgdyno.store.run_file import RunFile, resume_command
from pgdyno.target.host_facts import manifest, own_version
from pgdyno.target.open_target import data_folder

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_NONE = Installation()
_NOTHING_LEFT = "Nothing is left of it."


@dataclass(frozen=True, slots=True)
class Begun:
    """A run file that is written, or about to be."""

    path: Path
    info: RunInfo
    is_new: bool

    def reported(self) -> Run:
        """The run, once its page is written."""
        return reported(self.path)


def begun(
    experiment: str,
    name: str,
    command: str,
    out: str | Path | None,
    *,
    data: Path | None = None,
    build: Installation = _NONE,
) -> Begun:
    """A new run; refused before anything is measured if its files cannot be written.

    Args:
        experiment: Of which kind.
        name: Ends its ident, which begins with the time.
        command: How to repeat it.
        out: The run file; None: below `runs`.
        data: The folder whose storage the manifest tells; None: where clusters are put.
        build: PostgreSQL's programs, where any are used.

    Raises:
        StoreError: Something else lies where the page would be.
    """
    ident, started_ns, path = named_now(name, out)
    info = RunInfo(
        ident=ident, started_ns=started_ns, pgdyno=own_version(), command=command, plan=None,
        host=manifest(data or data_folder()), build=build, workload=None,
        experiment=experiment,
    )  # fmt: skip
    return Begun(path, info, is_new=True)


def going_on(run: Run, data: Path | None = None) -> Begun:
    """A run that was broken off.

    Raises:
        PlanError: It was begun on another machine, or by another pgdyno.
        StoreError: See `begun`.
    """
    require_same(
        {"pgdyno": run.info.pgdyno, **asdict(run.info.host)},
        {"pgdyno": own_version(), **asdict(manifest(data or data_folder()))},
    )
    require_page(run.path.with_suffix(".html"), beside=(run.path,))
    return Begun(run.path, run.info, is_new=False)


@contextmanager
def stored(
    begun: Begun, *, announced: bool = True
) -> Iterator[Callable[[DataclassInstance], None]]:
    """The run file, held open, as a function that keeps all that was found so far.

    A file in which nothing was measured goes when it ends early: it would keep its name from the
    next one, and there is nothing in it to resume. A kill leaves it, and then it can be resumed.

    Args:
        begun: See there.
        announced: The first that is kept of a new run is what is to be measured.

    Raises:
        StoreError: It cannot be written.
        PgdynoError: What ended it, with how to go on.
        Interrupted: Ctrl-C; the same.
    """
    path = begun.path
    again = resume_command(path)
    measured = -announced if begun.is_new else 1
    made: os.stat_result | None = None

    def is_left() -> bool:
        if measured > 0:
            return True
        with suppress(OSError):
            if made is not None and os.path.samestat(made, path.lstat()):  # what others put there?
                path.unlink()
        return False

    try:
        with RunFile.create(path, begun.info, ()) if begun.is_new else RunFile.append(path) as file:
            made = path.lstat() if begun.is_new else None

            def keep(found: DataclassInstance) -> None:
                nonlocal measured
                file.put_found(begun.info.experiment, found)
                measured += 1

            yield keep
    except (KeyboardInterrupt, Interrupted):
        if is_left():
            hint = f"Continue with `{again}`."
            raise Interrupted("stopped; what was measured is kept", hint) from None
        raise Interrupted("stopped before anything was measured", _NOTHING_LEFT) from None
    except PgdynoError as error:
        if is_left():
            error.add_note(f"what was measured until then is kept; continue with `{again}`")
        raise
    except BaseException:
        is_left()
        raise
