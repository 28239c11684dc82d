"""Stages of a plan, resolved for a server and a host: every setting with where it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgdyno.catalog import knobs, profile
from pgdyno.model.build import Build
from pgdyno.model.durability import Durability, over_servers, servers_text, together
from pgdyno.model.plan import STAGE_FLAGS, Stage, StageFlag, TargetKind
from pgdyno.model.pooler import Pooler
from pgdyno.model.proposal import Prediction
from pgdyno.model.settings import HostFacts, Rung, ServerFacts, Setting
from pgdyno.model.wording import small
from pgdyno.model.workload import Workload
from pgdyno.plan.resolve.contradictions import contradictions
from pgdyno.plan.resolve.earlier_figures import figures_of
from pgdyno.plan.resolve.guard import guard_problems, replicas_problems, synchronous_problems
from pgdyno.plan.resolve.lowest_rung import too_low
from pgdyno.plan.resolve.lying_disk import lying_disk_problems
from pgdyno.plan.resolve.machine import (
    as_asked,
    machine_losses,
    machine_problems,
    machine_settings,
)
from pgdyno.plan.resolve.pooler import pooler_problems, poolers, server_sessions
from pgdyno.plan.resolve.profile import size_profile
from pgdyno.plan.resolve.unlogged import unlogged_losses, unlogged_problems
from pgdyno.plan.schema.complaint import COMPLAINTS_MAX, Complaint, leave_out, shown
from pgdyno.plan.schema.plan_file import ExpectsTable, StageTable, from_there_on
from pgdyno.plan.schema.read import TWIN_SUFFIX, PlanDraft
from pgdyno.plan.schema.toml import toml_key
from pgdyno.plan.settings.allowed import (
    MEASURED_ELSEWHERE,
    SESSION_CONTEXTS,
    libraries_problem,
    of_running,
    out_of_reach,
    set_there,
    setting_problem,
    setting_text,
    taken_by,
)
from pgdyno.plan.settings.configured import Configured
from pgdyno.plan.settings.durability import (
    Read,
    lying_disk_losses,
    settings_losses,
    workload_losses,
)
from pgdyno.plan.settings.values import default_text, show

Problem = tuple[str, str, str | None]  # setting, value and what is wrong, hint
Seen = tuple[Setting | None, str, str]
Flags = dict[StageFlag, bool]

_NOTHING_LOST = "no setting gives up durability"


@dataclass(frozen=True, slots=True)
class StageServer:
    """What a stage runs on."""

    build: Build | None  # None: the target's own installation
    facts: ServerFacts


@dataclass(slots=True)
class Resolved:
    """Stages as far as they could be resolved, and what is wrong with them."""

    stages: list[Stage] = field(default_factory=list)
    configs: list[Configured] = field(default_factory=list)  # of the stages, in order
    notes: list[str] = field(default_factory=list)
    complaints: list[Complaint] = field(default_factory=list)


def resolve_stages(draft: PlanDraft, servers: Sequence[StageServer], host: HostFacts) -> Resolved:
    """Resolve all stages of a draft; nothing is raised, everything wrong is collected.

    Args:
        draft: From `read_plan`.
        servers: What each stage runs on.
        host: The machine.
    """
    result = Resolved()
    before: dict[str, Setting] = {}
    folder: str | None = None
    asked: dict[str, Setting] = {}
    seen: set[Seen] = set()
    tables, target = draft.document.stage, draft.document.target
    of_stages = zip(tables, draft.clients, servers, _flags(tables), poolers(tables), strict=True)
    for table, client, server, flags, pooler in of_stages:
        if len(result.complaints) > COMPLAINTS_MAX:
            break
        settings = {} if table.afresh else dict(before)
        folder = table.folder or (None if table.afresh else folder)
        own = machine_settings(table, draft)
        asked = ({} if table.afresh else asked) | own
        there = as_asked(host, asked)
        settings |= _own_settings(table, settings, draft, server.facts, there, result)
        if server.build is not None:
            settings = _taken(table, settings, before, server.facts, result)
        before = settings
        values = {name: one.value for name, one in settings.items()}
        config = Configured(server.facts, values)
        workload = draft.driven(client.table)
        protocol = draft.document.protocol
        durability = together(
            _durability(config, settings, workload, draft, folder, host, flags["guard"]),
            Durability(machine_losses(asked)),
            unlogged_losses(table.name, draft.source) if flags["unlogged"] else Durability(),
            lying_disk_losses(f"{draft.source}: stage {table.name}")
            if flags["lying_disk"]
            else Durability(),
        )
        kind, lowest = target.kind, protocol.lowest_rung
        problems = [
            *_rung_problems(config, lowest, flags["guard"]),
            *_asked_problems(config, draft, workload, pooler, flags),
            *_problems_together(
                config, draft, _sessions(workload, draft, pooler), there, table.name
            ),
            *machine_problems(own, kind, lowest),
        ]
        _tell(result, table.name, settings, problems, _setting_notes(config), seen)
        ordered = tuple(
            replace(settings[name], default=default_text(server.facts.knobs.get(name)))
            for name in sorted(settings)
        )
        result.stages.append(
            Stage(
                table.name, table.why, table.afresh, ordered, durability.lowest,
                reason_of(durability), workload, client.chosen, build=server.build,
                earlier=figures_of(table.earlier), folder=folder, durability=durability,
                expects=_prediction(table.expects), standby=flags["guard"] or target.replicas > 0,
                host=tuple(asked[name] for name in sorted(asked)), pooler=pooler,
                guard=flags["guard"], unlogged=flags["unlogged"],
                lying_disk=flags["lying_disk"], synchronous=flags["synchronous"],
            )
        )  # fmt: skip
        result.configs.append(config)
    if draft.aa:
        result.stages.append(twin(result.stages[0]))
        result.configs.append(result.configs[0])
    return result


def _flags(tables: Sequence[StageTable]) -> list[Flags]:
    """What each stage says beside its settings."""
    of_each = [from_there_on(tables, key) for key in STAGE_FLAGS]
    return [dict(zip(STAGE_FLAGS, told, strict=True)) for told in zip(*of_each, strict=True)]


def _asked_problems(
    config: Configured,
    draft: PlanDraft,
    workload: Workload,
    pooler: Pooler | None,
    flags: Flags,
) -> Iterator[Problem]:
    """What keeps a stage from what it asks for beside its settings."""
    target, protocol = draft.document.target, draft.document.protocol
    guard = flags["guard"]
    if flags["unlogged"]:
        replicated = bool(target.replica or target.replicas)
        yield from unlogged_problems(workload, protocol, guarded=guard, replicated=replicated)
    if flags["lying_disk"]:
        yield from lying_disk_problems(config, target.kind, protocol.lowest_rung, guarded=guard)
    if guard:
        yield from guard_problems(config, target.kind)
    if flags["synchronous"]:
        yield from synchronous_problems(config, guarded=guard)
    if target.replicas:
        yield from replicas_problems(config, pooler=pooler)
    if pooler:
        yield from pooler_problems(pooler, workload, target.kind)


def _sessions(workload: Workload, draft: PlanDraft, pooler: Pooler | None) -> int:
    """Of the load with one server, or with a replica of ours, which has the same settings."""
    target = draft.document.target
    own = server_sessions(workload, pooler) // max(1, len(target.servers))
    return max(own, workload.replica_connections) if target.replicas else own


def _tell(
    result: Resolved,
    stage: str,
    settings: Mapping[str, Setting],
    problems: Sequence[Problem],
    notes: Iterator[tuple[str, str]],
    seen: set[Seen],
) -> None:
    """Problems and notes of a stage; what an earlier stage brought in was told there."""
    keyed = {(settings.get(name), name, text): hint for name, text, hint in problems}
    result.complaints += [
        _of(stage, name, text, hint=hint)
        for (setting, name, text), hint in keyed.items()
        if (setting, name, text) not in seen
    ]
    seen |= set(keyed)
    for name, text in notes:
        setting = settings.get(name)
        if (setting, name, text) not in seen:
            seen.add((setting, name, text))
            whose = f"stage {stage}" if setting else "the server"
            result.notes.append(f"{whose}: {name} = {text}")


def _prediction(table: ExpectsTable | None) -> Prediction | None:
    if table is None:
        return None
    return Prediction(table.ratio, table.low, table.high, table.limit)


def _taken(
    table: StageTable,
    settings: Mapping[str, Setting],
    before: Mapping[str, Setting],
    server: ServerFacts,
    result: Resolved,
) -> dict[str, Setting]:
    """The settings without those of the stages before that this stage's build does not take."""
    taken = {}
    for name, one in settings.items():
        inherited = before.get(name) is one
        problem = setting_problem(name, one.value, server, "installed") if inherited else None
        if problem is None:
            taken[name] = one
        else:
            result.complaints.append(_of(table.name, name, problem))
    return taken


def _own_settings(
    table: StageTable,
    before: Mapping[str, Setting],
    draft: PlanDraft,
    server: ServerFacts,
    host: HostFacts,
    result: Resolved,
) -> dict[str, Setting]:
    """What the stage itself adds: its profile, and its settings over it."""
    kind = draft.document.target.kind
    own: dict[str, Setting] = {}
    for name, given in table.settings.items():
        value, problem = setting_text(name, given, server)
        if problem := problem or setting_problem(name, value, server, kind):
            complaint = _of(table.name, name, problem)
            result.complaints.append(_with_a_way([name], complaint, server, kind))
            continue
        own[name] = Setting(name, value.strip(), draft.origin_of(table.name, "settings", name))
    if table.profile is None:
        return own
    own_values = {name: one.value for name, one in own.items()}
    old_values = {name: one.value for name, one in before.items()}
    sized, notes = size_profile(profile(table.profile), own_values, old_values, server, host)
    result.notes += notes
    if kind == "running":
        may, may_not = of_running([one.name for one in sized], server)
        if may_not:
            names = ", ".join(knob.name for knob in may_not)
            allowed = ", ".join(knob.name for knob in may)
            text = (
                f"{table.profile} sets what cannot be set on a running server: {names};"
                f" allowed: settings of context {' or '.join(SESSION_CONTEXTS)}, here {allowed}"
            )
            complaint = _of(table.name, "profile", text, ": ")
            out = [knob.name for knob in may_not]
            result.complaints.append(_with_a_way(out, complaint, server, kind))
    return {one.name: one for one in sized} | own


def _with_a_way(
    names: list[str], complaint: Complaint, server: ServerFacts, kind: TargetKind
) -> Complaint:
    """The complaint, with how settings are measured that cannot be set on a running server."""
    names = out_of_reach(names, server) if kind == "running" else []
    if not names:
        return complaint
    return replace(complaint, hint=MEASURED_ELSEWHERE, further=taken_by(names, server))


def stage_rung(config: Configured, *, guarded: bool = False) -> tuple[Rung, str]:
    """The rung of a stage by its settings, and all of them that give up durability."""
    found = together(Durability(settings_losses(_reader(config, {}), guarded=guarded)))
    return found.lowest, reason_of(found)


def reason_of(durability: Durability) -> str:
    """What puts a stage on its rung, lowest first, in a line."""
    said = dict.fromkeys(loss.said for loss in durability.reasons)
    return ", ".join(said) or _NOTHING_LOST


def _durability(
    config: Configured,
    settings: Mapping[str, Setting],
    workload: Workload,
    draft: PlanDraft,
    folder: str | None,
    host: HostFacts,
    guard: bool,
) -> Durability:
    """What is known before anything runs."""
    own = together(
        _of_settings(config, settings, guard),
        Durability(workload_losses(workload, config.server.knobs)),
    )
    if draft.document.target.kind == "running":
        return together(own, Durability((), ("the server's storage, tables, databases and roles",)))
    if folder is None:
        return together(own, host.durability or Durability())
    place = host.place(folder)
    unread = Durability((), (f"the storage of folder {folder}",))
    return together(own, place.durability if place and place.durability else unread)


def _of_settings(config: Configured, settings: Mapping[str, Setting], guard: bool) -> Durability:
    """What the settings of a stage's server lose; of several servers, those of each."""
    each = {
        one.server.name: Durability(settings_losses(_reader(one, settings), guarded=guard))
        for one in _each(config)
    }
    return over_servers(each) if len(each) > 1 else each[config.server.name]


def _each(config: Configured) -> list[Configured]:
    """A stage's settings over the defaults of each of its servers."""
    servers = (config.server, *config.server.others)
    return [replace(config, server=one) for one in servers]


def _reader(config: Configured, settings: Mapping[str, Setting]) -> Read:
    def read(name: str) -> tuple[str, str, str] | None:
        word = config.word(name)
        if word is None:
            return None
        source = settings[name].origin.detail if name in settings else "the server's default"
        return word, "server", source

    return read


def _rung_problems(config: Configured, lowest: Rung, guard: bool) -> Iterator[Problem]:
    # A rung that asks for a guard on data that are kept needs none here: trials run on copies
    # that are thrown away, and a running server does not let such settings be set.
    servers = _each(config)
    fallen: dict[tuple[Rung, str], list[Configured]] = {}
    for one in servers:
        rung, reason = stage_rung(one, guarded=guard)
        if rung > lowest:
            fallen.setdefault((rung, reason.partition(", ")[0]), []).append(one)
    for (rung, reason), those in fallen.items():
        name, _, value = reason.partition(" = ")
        if len(those) < len(servers):
            names = [one.server.name for one in those]
            value = f"{value} on {servers_text(names, len(servers))}"
        text, hint = too_low(value + _as_found(those[0], name), rung, lowest)
        if name not in those[0].values and those[0].server.role is not None:
            hint = f"{set_there(name, those[0].server)}. Or, to measure it so: {small(hint)}"
        if stage_rung(those[0], guarded=True)[0] <= lowest:
            hint += " Or let a standby repair what is torn: guard = true in the stage."
        yield name, text, hint


def _as_found(config: Configured, name: str) -> str:
    """That no stage sets it, but a server that is not ours, and where it does."""
    if name in config.values or config.server.role is None:
        return ""
    place = config.server.set_in.get(name)
    return f", as the server has it{f' ({place})' if place else ''},"


def _problems_together(
    config: Configured, draft: PlanDraft, connections: int, host: HostFacts, stage: str
) -> Iterator[Problem]:
    """Contradictions, and settings of libraries that are not loaded."""
    document = draft.document
    there = None if document.target.kind == "running" else host
    for name, text in contradictions(config, connections, there, document.target.initdb):
        yield name, text, leave_out(stage) if name == "huge_pages" else None
    libraries = ",".join(
        config.values.get(name, "")
        for name in ("shared_preload_libraries", "session_preload_libraries")
    )
    for name, value in config.values.items():
        if "." in name and name not in config.server.knobs:
            problem = libraries_problem(name, libraries)
            if problem is not None:
                yield name, f"{shown(value)} {problem}", None


def _setting_notes(config: Configured) -> Iterator[tuple[str, str]]:
    """What a reader must know of a value, as (setting, value and text).

    Of a server that is not ours also of what it has.
    """
    there = () if config.server.role is None else config.server.knobs
    for name in dict.fromkeys((*config.values, *there)):
        knob, word = knobs().get(name), config.word(name)
        for note in knob.note if knob else ():
            if word is not None and note.holds(word):
                yield name, f"{show(config.server.knobs[name], word)} {note.text}"


def twin(first: Stage) -> Stage:
    """The stage that measures the same again."""
    return replace(
        first, name=first.name + TWIN_SUFFIX, afresh=True, twin_of=first.name, earlier={},
        expects=None, why=f"Measures the same as {first.name}: what differs is noise.",
    )  # fmt: skip


def _of(
    stage: str, name: str, text: str, between: str = " = ", hint: str | None = None
) -> Complaint:
    """A complaint on a setting of a stage: `stage tuned: max_wal_size = "1XB" ...`."""
    return Complaint(f"stage {stage}", f"{toml_key(name)}{between}{text}", hint)
