"""What `pgdyno run --dry-run` prints: everything a plan would do, before anything is touched.

Readable at 100 columns and without colours; colours only repeat what the words say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pgdyno.model.durability import LADDER, NOT_KNOWN
from pgdyno.model.file_system import IN_MEMORY
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.settings import HostFacts, OriginKind, Rung, ServerFacts, Setting
from pgdyno.model.text import one_line
from pgdyno.model.units import bytes_text, seconds_text
from pgdyno.model.wording import listed, plural
from pgdyno.plan.describe import build_text, workload_lines, workload_values
from pgdyno.plan.dry_run_trials import configured, trials
from pgdyno.plan.estimate.needs import (
    ONE_TO_LOAD,
    WAL,
    Fixtures,
    Need,
    fixture_size,
    hungriest_memory,
    rooms,
    shared,
)
from pgdyno.plan.granted import granted
from pgdyno.plan.resolve.builds import NO_BUILDS, Builds
from pgdyno.plan.settings.checkpoints import (
    protocol_text,
)
from pgdyno.plan.settings.configured import Configured
from pgdyno.plan.settings.fleet import fleet_text
from pgdyno.plan.settings.rights import rights, rights_there
from pgdyno.plan.settings.stopping import rounds_text
from pgdyno.plan.settings.values import show

_DIGEST_LETTERS = 16
_RUNG_STYLES = {
    Rung.D0: "green",
    Rung.D1: "green",
    Rung.D2: "yellow",
    Rung.D3: "yellow",
    Rung.D4: "red",
    Rung.D5: "red",
    Rung.D6: "red",
    NOT_KNOWN: "yellow",
}


def render_dry_run(
    plan: Plan,
    server: ServerFacts,
    host: HostFacts,
    fixtures: Fixtures = ONE_TO_LOAD,
    builds: Builds = NO_BUILDS,
) -> RenderableType:
    """A resolved plan for people: target, stages with settings and origins, trials, time, needs.

    Args:
        plan: The resolved plan.
        server: Version and settings of its target.
        host: The machine.
        fixtures: Sizes of the loaded databases that the stages need.
        builds: What the stages run on, if any names a build.
    """
    configs = configured(plan, server, builds)
    return Group(
        Text(plan.question, style="bold"),
        Text(),
        _facts(plan, server, host),
        *_stages(plan, configs, host),
        _heading("Trials"),
        *trials(plan, configs, host),
        *_needs(plan, configs, host, fixtures),
        *(line for one in (server, *server.others) for line in _rights(plan, one, server)),
        *_rights_there(plan, server),
        *_stored(plan),
        *_notes(plan),
        Text(),
        Text("Nothing was touched."),
    )


def _heading(text: str) -> Text:
    return Text(f"\n{text}", style="bold underline")


def _facts(plan: Plan, server: ServerFacts, host: HostFacts) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(style="dim")
    origin = plan.target.bindir or "; ".join(plan.target.conninfos)
    where = f": {origin}" if origin else ""
    rows = [
        ("plan", [f"{plan.name} ({plan.source})"], []),
        (
            "target",
            [f"{plan.target.kind}, {server.version}{where}", *_divided(plan), *_replicas(plan)],
            _who(plan, "target"),
        ),
        (
            "client host" if plan.target.kind == "running" else "host",
            [
                f"{host.cpus} CPUs, {bytes_text(host.memory_bytes)} of memory;"
                f" {host.data_path} on {host.file_system}"
            ],
            [],
        ),
        *(
            (
                f"server {one.name}".strip(),
                [f"{key}: {text}" for key, text in one.about.items()],
                [],
            )
            for one in (server, *server.others)
            if one.about
        ),
        ("workload", workload_lines(plan.workload), _who(plan, "workload")),
        ("protocol", _protocol_lines(plan), _who(plan, "protocol")),
    ]
    for name, value, who in rows:
        table.add_row(name, _cell(value), _cell(who))
    return table


def _divided(plan: Plan) -> Iterator[str]:
    """What each of several servers has of the workload."""
    if plan.target.share == "block":
        assert plan.workload.tpcc is not None, "only warehouses are divided into blocks"
        size = plan.workload.of_part(plan.workload.tpcc.warehouses)
        own = plural(size, "warehouse")
        yield f"each with {own}, and an even part of connections and terminals"
    elif plan.target.servers:
        yield "each with the workload's data, connections and terminals for itself"


def _replicas(plan: Plan) -> Iterator[str]:
    """What is made beside the server for each trial."""
    if plan.target.replicas:
        yield "with a streaming standby on the same machine, which is made for each trial"


def _cell(lines: Sequence[str]) -> Text:
    """Lines of a table's cell; none of them has a break of its own."""
    return Text("\n".join(map(one_line, lines)))


def _short(seconds: float) -> str:
    """A duration as the plan has it, where it is below a minute."""
    return f"{seconds:g} s" if seconds < 60 else seconds_text(seconds)


def _protocol_lines(plan: Plan) -> list[str]:
    protocol = plan.protocol
    checked = protocol.checked_rounds
    lines = [
        f"{rounds_text(protocol)}; warm-up {_short(protocol.warmup_s)},"
        f" window {_short(protocol.window_s)}",
        f"equivalent within {protocol.margin * 100:g}%,"
        f" intervals of {protocol.confidence * 100:g}%, lowest rung {protocol.lowest_rung}"
        f"{', lost connections allowed' * protocol.survive}"
        f"{', crash and recovery after each window' * protocol.crash_recovery}",
        "" if checked is None else f"consistency checked up to round {checked}",
        protocol_text(protocol),
        fleet_text(protocol.fleet, fills=plan.workload.to_load is not None)
        if protocol.fleet
        else "",
        f"a profile of {seconds_text(protocol.profile_s)} after each window"
        if protocol.profile_s
        else "",
    ]
    *before, last = filter(None, lines)
    return [*(f"{line};" for line in before), last]


def _who(plan: Plan, table: str) -> list[str]:
    """Keys of a table that neither the plan nor a default chose, with who did."""
    chosen = {
        key.removeprefix(f"{table}."): "--quick" if who == "quick" else "--set"
        for key, who in plan.origins.items()
        if key.startswith(f"{table}.") and (who == "quick" or who.startswith("--set"))
    }
    if table == "target":  # options of the command line that set two keys at once
        named = [key for key in ("bindir", "conninfo") if key in chosen]
        rest = [key for key in chosen if key not in named and not (named and key == "kind")]
        return [*(f"by --{key}" for key in named), *(f"{key} by {chosen[key]}" for key in rest)]
    lines = [f"{key} by {who}" for key, who in chosen.items()]
    profiles = {who for key, who in plan.origins.items() if who.startswith("profile ")}
    return [*lines, *(sorted(profiles) if table == "workload" else [])]


def _stages(plan: Plan, configs: Sequence[Configured], host: HostFacts) -> Iterator[RenderableType]:
    yield _heading("Stages")
    before: Stage | None = None
    for stage, config in zip(plan.stages, configs, strict=True):
        title = Text(f"\n{stage.name}", style="bold")
        known = stage.rung_known
        title.append(f"  {known}", style=_RUNG_STYLES[known])
        risk, beside = _lost(stage)
        title.append(f"  {risk}", style="not bold dim")
        yield title
        if beside is not None:
            yield Padding(Text(beside, style="dim"), (0, 0, 0, 2))
        yield Padding(Text(stage.why), (0, 0, 0, 2))
        if stage.client and stage.twin_of is None:
            yield Padding(_client(stage, before, plan), (0, 0, 0, 2))
        if stage.build is not None:
            yield Padding(Text(build_text(stage.build)), (0, 0, 0, 2))
        if stage.folder is not None:
            yield Padding(Text(_folder(stage.folder, host)), (0, 0, 0, 2))
        if stage.pooler is not None:
            yield Padding(Text(f"through PgBouncer: {stage.pooler.shown}"), (0, 0, 0, 2))
        if stage.host and stage.twin_of is None:
            yield Padding(_machine(stage, before), (0, 0, 0, 2))
        yield Padding(_settings(stage, before, config.server), (0, 0, 0, 2))
        before = stage


def _lost(stage: Stage) -> tuple[str, str | None]:
    """What a stage may lose and what puts it there; what else is, or is not, known of that."""
    layers = () if stage.durability is None else stage.durability.not_known
    unread = f"not known before it runs: {'; '.join(layers)}" if layers else None
    if stage.rung_known in LADDER:
        return f"{LADDER[stage.rung_known]}: {stage.rung_reason}", unread
    # What is known is no reason why the rest is not.
    rung = f" ({stage.rung}: {LADDER[stage.rung]})" if stage.rung is not Rung.D0 else ""
    return f"what may be lost is {unread}", f"known already: {stage.rung_reason}{rung}"


def _folder(path: str, host: HostFacts) -> str:
    place = host.place(path)
    if place is None:
        return f"data in {path}"
    memory = ", which is memory" if place.file_system in IN_MEMORY else ""
    free = bytes_text(place.free_bytes)
    return f"data in {path} on {place.file_system}{memory}, {free} free"


def _client(stage: Stage, before: Stage | None, plan: Plan) -> Table:
    """What of `[workload]` the stage has otherwise than the plan, and who said so."""
    table = _origin_table(None, "client", "value", "the plan has")
    base, own = workload_values(plan.workload), workload_values(stage.workload)
    inherited = set() if before is None or stage.afresh else set(before.client)
    for one in stage.client:
        who = f"as in {before.name}" if before and one in inherited else _origin(one)
        table.add_row(one.name, own[one.name], base[one.name], who)
    return table


def _machine(stage: Stage, before: Stage | None) -> Table:
    """What the stage changes of the machine while its trials run."""
    table = _origin_table("with --host, while its trials run:", "machine", "value", "now")
    inherited = set() if before is None or stage.afresh else set(before.host)
    for one in stage.host:
        who = f"as in {before.name}" if before and one in inherited else _origin(one)
        table.add_row(one.name, one.value, one.default or "?", who)
    return table


def _origin_table(title: str | None, *heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), title=title,
                  title_justify="left", title_style="")  # fmt: skip
    name, value, default = heads
    table.add_column(name, no_wrap=True)
    table.add_column(value, no_wrap=name != "client", overflow="fold")
    table.add_column(default, style="dim", no_wrap=name != "client", overflow="fold")
    table.add_column("origin", style="dim")
    return table


def _settings(stage: Stage, before: Stage | None, server: ServerFacts) -> RenderableType:
    if stage.twin_of is not None:
        return Text(f"the settings of {stage.twin_of}")
    inherited = set() if before is None or stage.afresh else set(before.settings)
    new = [setting for setting in stage.settings if setting not in inherited]
    head = ""
    if before is not None and inherited:
        count = len(stage.settings) - len(new)
        head = f"{plural(count, 'setting')} as in {before.name}" + (", and:" if new else "")
    is_ours = server.role is None
    if not new:
        otherwise = "the server's defaults" if is_ours else "the server as it is configured"
        return Text(head or f"nothing set: {otherwise}")
    usual = "server default" if is_ours else "server has"
    table = _origin_table(head or None, "setting", "value", usual)
    for setting in new:
        value, default = _value(setting, server), setting.default or "?"
        table.add_row(setting.name, value, default, _origin(setting))
    return table


def _value(setting: Setting, server: ServerFacts) -> str:
    """As in the plan; a plain number of a setting that has a unit also with it."""
    knob = server.knobs.get(setting.name)
    if knob is None or knob.unit is None or not setting.value.isdecimal():
        return setting.value
    with_unit = show(knob, setting.value)
    return setting.value if with_unit == setting.value else f"{setting.value} ({with_unit})"


def _origin(setting: Setting) -> str:
    kind, detail = setting.origin.kind, setting.origin.detail
    if kind is OriginKind.OVERRIDE:
        return "--set"
    return "plan" if kind is OriginKind.PLAN else detail


def _needs(
    plan: Plan, configs: Sequence[Configured], host: HostFacts, fixtures: Fixtures
) -> Iterator[RenderableType]:
    memory = hungriest_memory(plan, configs, host)
    disks = rooms(plan.stages, configs, plan.workload, plan.protocol, host, fixtures)
    if plan.target.kind == "running":
        yield from _needs_there(plan, disks[0].need)
        return
    yield _heading("Needs of the hungriest stage, by assumptions that are a little high")
    yield Text()
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(style="dim")
    table.add_row("memory", _of(memory.total_bytes, host.memory_bytes), memory.text())
    for room in disks if disks[0].need.parts else disks[1:]:
        where = f"in {room.path}: " if len(disks) > 1 else ""
        if room.in_memory:
            where = f"in {room.path}, which is memory ({room.file_system}), on top of the above: "
        kind = "memory" if room.in_memory else "disk"
        need = _of(room.need.total_bytes, room.free_bytes)
        table.add_row(kind, need, where + room.need.text())
    for together in shared(disks):
        needed = sum(room.need.total_bytes for room in together)
        paths = listed([room.path for room in together])
        where = f"together, on one file system: {paths}"
        table.add_row("", _of(needed, together[0].free_bytes), where)
    yield table


def _needs_there(plan: Plan, disk: Need) -> Iterator[RenderableType]:
    """What a server that is not ours gives, on top of what it has."""
    yield _heading("What it takes on the server, by assumptions that are a little high")
    yield Text()
    loaded = fixture_size(plan.workload)
    more = Need(tuple(part for part in disk.parts if WAL not in part[0]))
    yield Text(f"disk  {bytes_text(more.total_bytes)}: {more.text()}")
    yield Text(
        f"WAL   about {bytes_text(loaded)} for loading, unless it is there already; that also goes"
        " to standbys and into the archive; then what the load writes"
    )


def _of(needed: int, there: int | None) -> str:
    of = "" if there is None else f" of {bytes_text(there)}"
    return f"{bytes_text(needed)}{of}"


def _rights(plan: Plan, server: ServerFacts, first: ServerFacts) -> Iterator[RenderableType]:
    """What the role may do on a server that is not ours, and what grants the rest."""
    if (role := server.role) is None:
        return
    where = f" on {server.name}" if server.name else ""
    yield _heading(f"Rights of role {role.name}{where}")
    yield Text()
    if role.is_superuser:
        yield Text("It is a superuser, who may do everything.")
        return
    yield from granted(rights(server, plan.protocol, plan.stages, 1 + len(first.others)))


def _rights_there(plan: Plan, server: ServerFacts) -> Iterator[RenderableType]:
    """The same on a replica that answers reads, where roles are those of its primary."""
    if server.replica is None:
        return
    yield _heading(f"Rights of role {server.replica.name} on the replica")
    yield Text()
    if not (found := rights_there(server, plan.stages)):
        yield Text("It has there what the plan needs.")
        return
    yield from granted(found)


def _stored(plan: Plan) -> Iterator[RenderableType]:
    """Whose text goes into the run file, which people share, beside the plan's own."""
    named = {(file.path, file.text) for stage in plan.stages for file in stage.workload.files}
    if not named:
        return
    yield _heading("Files whose text the run file will hold, beside the plan's")
    yield Text()
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for _ in range(3):
        table.add_column(overflow="fold")
    for path, text in sorted(named):
        content = text.encode()
        digest = hashlib.sha256(content).hexdigest()[:_DIGEST_LETTERS]
        table.add_row(path, f"{len(content)} bytes", f"SHA-256 {digest}…")
    yield table


def _notes(plan: Plan) -> Iterator[RenderableType]:
    if not plan.notes:
        return
    yield _heading("Notes")
    yield Text()
    for note in plan.notes:
        yield Text(f"- {note}")
