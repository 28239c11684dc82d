"""Plans: loaded, resolved for this host and its server, and looked at; nothing is touched."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console, RenderableType

from pgdyno.api.plan_disks import require_plan_disks_free
from pgdyno.api.repeating import option_words
from pgdyno.api.stage_machine import looked_at
from pgdyno.api.table import Table
from pgdyno.model.errors import DriveError, PgdynoError, PlanError
from pgdyno.model.plan import Estimate, Stage, Trial, Workload
from pgdyno.model.plan import Plan as PlanRecord
from pgdyno.model.plan import Target as TargetPlan
from pgdyno.model.settings import HostFacts, ServerFacts
from pgdyno.model.text import shell_line
from pgdyno.model.units import seconds_text
from pgdyno.model.wording import plural
from pgdyno.model.workload import Engine
from pgdyno.plan.dry_run import render_dry_run
from pgdyno.plan.estimate.needs import fixture_size
from pgdyno.plan.follow_up import folder_of
from pgdyno.plan.packaged import packaged_plans, plan_path
from pgdyno.plan.resolve.builds import Builds, stage_builds
from pgdyno.plan.resolve.fixture import fixture_ident, fixture_shape
from pgdyno.plan.resolve.plan import resolve, resolve_target, resolve_workload
from pgdyno.plan.schema.plan_file import from_there_on
from pgdyno.plan.schema.read import PlanDraft, read_plan, read_plan_text
from pgdyno.plan.schema.toml_text import toml_text, value_text
from pgdyno.plan.settings.rights import require_rights
from pgdyno.store.run_file import require_new
from pgdyno.target.host_facts import this_machine
from pgdyno.target.open_target import (
    build_facts,
    builds_there,
    fixture_bytes,
    local_facts,
    require_compilers,
    require_folders,
    require_poolers,
    server_facts,
)
from pgdyno.trial.description import describe_stages
from pgdyno.workload.describe import describe

FROM_PYTHON = "plan from Python"
"""What a plan is called that no file holds."""
_FOLLOW_UP = "follow-up plan"
_WIDTH = 100
_Source = str | Path | Mapping[str, object]
_Set = Mapping[str, object] | Iterable[str]


class Preview:
    """What a plan would do: what `pgdyno run --dry-run` prints."""

    def __init__(self, rendered: RenderableType) -> None:
        self._rendered = rendered

    def __rich__(self) -> RenderableType:
        return self._rendered

    def __str__(self) -> str:
        with io.StringIO() as text:
            Console(file=text, width=_WIDTH, color_system=None).print(self._rendered)
            return text.getvalue()

    def _repr_html_(self) -> str:
        console = Console(file=io.StringIO(), width=_WIDTH, record=True)
        console.print(self._rendered)
        return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan that can be carried out on this host, with what it was resolved for.

    `load_plan` makes one. It is a value: `replace` gives another one.
    """

    record: PlanRecord
    server: ServerFacts
    host: HostFacts
    fixtures: tuple[int | None, ...]  # bytes of those of the stages; None: not loaded yet
    builds: Builds
    _source: _Source

    @property
    def name(self) -> str:
        """Of the plan, and of its runs."""
        return self.record.name

    @property
    def stages(self) -> tuple[Stage, ...]:
        """In the order of the plan, every setting with its origin."""
        return self.record.stages

    @property
    def trials(self) -> tuple[Trial, ...]:
        """In the order of execution."""
        return self.record.trials

    @property
    def estimate(self) -> Estimate:
        """Seconds and bytes that it will take."""
        return self.record.estimate

    @property
    def data_bytes(self) -> int:
        """Of the largest fixture, as it is or as it is estimated."""
        guessed = fixture_size(self.record.workload)
        return max(guessed if size is None else size for size in self.fixtures)

    @property
    def command(self) -> str:
        """How to repeat it from a shell."""
        if isinstance(self._source, Mapping):
            return "pgdyno.run(plan), from Python"
        words = ["pgdyno", "run", str(self._source), *option_words(self.record.overrides)]
        words += ["--folder", ",".join(self.record.folders)] * bool(self.record.folders)
        words += ["--quick"] * self.record.quick + ["--aa"] * self.record.aa
        return shell_line(words)

    @property
    def files(self) -> tuple[Path, ...]:
        """The plan file, if there is one."""
        return () if isinstance(self._source, Mapping) else (Path(self.record.source),)

    def preview(self) -> Preview:
        """What it would do: stages, settings with origins, trials, time, memory, disk."""
        return Preview(
            render_dry_run(self.record, self.server, self.host, self.fixtures, self.builds)
        )

    def require_possible(self, out: Path | None = None) -> None:
        """Look for what would end a run before it begins; nothing is touched.

        Args:
            out: The run file that is to be written, if it is known.

        Raises:
            PlanError: Our role lacks rights on a running server: each, and what grants it.
            StoreError: There is such a file, or it has the name of its page.
            TargetError: Another pgdyno measures on a disk of the plan now: who, and where.
        """
        require_rights(self.record, self.server)
        if out is not None:
            require_new(out)
        require_plan_disks_free(self.record)

    def replace(self, changes: _Set) -> Plan:
        """The same plan with other values, e.g. `{"protocol.rounds": 3}`.

        Raises:
            PlanError: A key or value is wrong.
        """
        return load_plan(
            self._source, set=[*self.record.overrides, *_overrides(changes)],
            quick=self.record.quick, aa=self.record.aa, folders=self.record.folders,
        )  # fmt: skip

    def to_toml(self) -> str:
        """The plan file as it was read, without what `set` changed."""
        return self.record.text

    def __repr__(self) -> str:
        seconds = self.estimate.measuring_s + self.estimate.other_s
        return (
            f"<Plan {self.name}: {plural(len(self.stages), 'stage')},"
            f" {plural(len(self.trials), 'trial')}, about {seconds_text(seconds)}>"
        )

    def _repr_html_(self) -> str:
        return self.preview()._repr_html_()


def load_plan(
    source: _Source,
    *,
    set: _Set = (),
    quick: bool = False,
    aa: bool = False,
    folders: Sequence[str | Path] = (),
    bindir: str | Path | None = None,
    conninfo: str | None = None,
    engine: Engine | None = None,
) -> Plan:
    """Read a plan, and resolve it for this host and its server. Nothing is touched.

    Args:
        source: A TOML file, the name of a plan that comes with pgdyno (see `plans`), or what such
            a file holds, as a mapping.
        set: Other values by dotted key, e.g. `{"workload.warehouses": 100}`; or as `--set` has
            them, `["workload.warehouses=100"]`.
        quick: The plan's own short version.
        aa: Measure the first stage twice in every round, for the noise floor.
        folders: Existing ones, e.g. on several disks: stages of `each_folder` are repeated for
            each of them.
        bindir: Programs of an installed PostgreSQL, instead of the plan's target.
        conninfo: A running server, as libpq names it, instead of the plan's target.
        engine: Who drives, instead of the plan's engine, where no stage says otherwise.

    Raises:
        PlanError: It is wrong, or cannot be carried out here; everything that is wrong is told.
        TargetError: The server that it names is not there.

    Example:
        >>> import pgdyno
        >>> plan = pgdyno.load_plan("faces", set={"protocol.rounds": 3})
        >>> [stage.name for stage in plan.stages]
        ['statement', 'pipeline', 'procedure']
    """
    overrides = [*_overrides(set), *_overrides(_instead(bindir, conninfo, engine))]
    named = [str(Path(folder).absolute()) for folder in folders]
    if isinstance(source, Mapping):
        text = toml_text(source)
        draft = read_plan_text(
            text, FROM_PYTHON, Path.cwd(), overrides, quick=quick, aa=aa, folders=named
        )
    else:
        draft = read_plan(plan_path(source), overrides, quick=quick, aa=aa, folders=named)
    plan = _resolved(draft, source)
    describe_stages(plan.record)
    require_folders(plan.record, plan.data_bytes)
    require_poolers(plan.record)
    require_compilers(plan.record)
    return replace(plan, record=looked_at(plan.record))


def load_follow_up(earlier: PlanRecord, document: Mapping[str, object]) -> Plan:
    """A follow-up plan of a run's, resolved as `load_plan` does; see `plan.follow_up`.

    Args:
        earlier: The run's, whose files lie where its plan lay.
        document: What the plan file would hold.

    Raises:
        PlanError: It cannot be carried out here.
        TargetError: The server that it names is not there.
    """
    draft = read_plan_text(toml_text(document), _FOLLOW_UP, folder_of(earlier))
    return _resolved(draft, document)


def against_follow_up(error: PgdynoError) -> str:
    """What a follow-up plan was refused for, in one line: it stands in a list of stages."""
    told = error.fact.removeprefix(f"{_FOLLOW_UP}: ")
    return "; ".join(line.strip() for line in told.splitlines())


def plans() -> Table:
    """Plans that come with pgdyno, a row each: what `load_plan` and `pgdyno run` take as a name."""
    rows = [
        {"name": one.name, "question": one.question, "stages": one.stages, "path": str(one.path)}
        for one in packaged_plans()
    ]
    return Table.of(rows, ("name", "question", "stages", "path"))


def _overrides(changes: _Set) -> list[str]:
    if isinstance(changes, Mapping):
        return [f"{key}={value_text(value, str(key))}" for key, value in changes.items()]
    return list(changes)


def _instead(
    bindir: str | Path | None, conninfo: str | None, engine: Engine | None
) -> dict[str, object]:
    """Keys of a plan for what may be named beside it."""
    if bindir is not None and conninfo is not None:
        raise PlanError(
            "a bindir and a conninfo are both given (--bindir, --conninfo)",
            "A plan has one target: give one of them.",
        )
    keys: dict[str, object] = {} if engine is None else {"workload.engine": engine}
    if bindir is not None:
        return keys | {"target.kind": "installed", "target.bindir": str(Path(bindir).absolute())}
    if conninfo is not None:
        return keys | {"target.kind": "running", "target.conninfo": conninfo}
    return keys


def _resolved(draft: PlanDraft, source: _Source) -> Plan:
    target, workload = resolve_target(draft), resolve_workload(draft)
    named = stage_builds(draft, builds_there(), this_machine().cpu_model)
    distinct = {one.ident: one for one in named if one}
    builds = Builds(named, {ident: build_facts(one) for ident, one in distinct.items()})
    folders = [stage.folder for stage in draft.document.stage if stage.folder]
    server, host = _asked(draft, target), local_facts(folders)
    version = _rows_version(draft.source, workload)
    unlogged = from_there_on(draft.document.stage, "unlogged")
    shapes = [
        fixture_shape(target, workload, builds.server(build, server), version, unlogged=is_unlogged)
        for build, is_unlogged in zip(named, unlogged, strict=True)
    ]
    fixtures = {fixture_ident(shape): fixture_bytes(target, shape) for shape in shapes}
    there = tuple(fixtures.values())
    return Plan(
        resolve(draft, server, host, there, builds=builds), server, host, there, builds, source
    )


def _asked(draft: PlanDraft, target: TargetPlan) -> ServerFacts:
    """What the server is; where it is not there, the key or option that named it is told."""
    try:
        return server_facts(target)
    except PgdynoError as error:
        running = "target.servers" if target.servers else "target.conninfo"
        key = {"installed": "target.bindir", "running": running}.get(target.kind)
        if key is None:
            raise
        by_option = draft.origins[key].startswith("--set")
        where = f"--{key.partition('.')[2]}" if by_option else f"{draft.source}: {key}"
        raise type(error)(f"{where}: {error.fact}", error.hint) from error


def _rows_version(source: str, workload: Workload) -> int | None:
    """Version of the rows that would be loaded; None: none are."""
    loaded = workload.to_load
    try:
        return describe(loaded).version if loaded else None
    except DriveError as error:
        raise PlanError(f"{source}: {error.fact}", error.hint) from error
