"""Reads a plan file: TOML, `[quick]` and `--set` to a checked draft. Needs no server."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import ValidationError

from pgdyno.catalog import profile_names
from pgdyno.model.errors import PlanError
from pgdyno.model.looks import LOOKS
from pgdyno.model.settings import Origin
from pgdyno.model.wording import plural
from pgdyno.model.workload import Workload
from pgdyno.plan.schema.client import StageClient, impossible, stage_clients, with_profile
from pgdyno.plan.schema.complaint import Complaint, refuse, shown
from pgdyno.plan.schema.each_folder import repeated
from pgdyno.plan.schema.errors import complaints_of
from pgdyno.plan.schema.fleet_table import fleet_complaints
from pgdyno.plan.schema.override import (
    CHECKPOINTS,
    Override,
    Path,
    apply_overrides,
    follows_checkpoints,
    parse_override,
    quick_values,
    stage_origin,
    with_quick,
)
from pgdyno.plan.schema.plan_file import PlanDocument, TargetTable
from pgdyno.plan.schema.replica import replica_complaints
from pgdyno.plan.schema.servers import servers_complaints, stage_complaints
from pgdyno.plan.schema.sources import read_sources, text_of
from pgdyno.plan.schema.toml import BadToml, parse_toml
from pgdyno.plan.schema.workload import workload_of
from pgdyno.plan.schema.workload_table import TABLES, WorkloadTable, kind_of

TWIN_SUFFIX = "-twin"


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """A plan whose file is in order; whether a server and a host can do it is not known yet."""

    document: PlanDocument
    source: str  # path, as given
    text: str  # the TOML
    quick: bool
    aa: bool
    overrides: tuple[str, ...]
    folders: tuple[str, ...]  # of `--folder`
    origins: Mapping[str, str]  # dotted key of target, workload, protocol -> who chose its value
    set_settings: frozenset[tuple[str, str]]  # (stage, setting) that --set chose
    set_host: frozenset[tuple[str, str]]  # (stage, setting of the machine) that --set chose
    clients: tuple[StageClient, ...]  # of the stages, in order
    sources: Mapping[str, str]  # path of a file that the workload names -> its content
    skipped: Mapping[str, str]  # stage that is left out -> the option that brings it in
    whole_rounds: int | None = None  # see `Protocol`
    ignores_cycles: bool = False  # by `--quick`, where the whole plan follows checkpoints

    def driven(self, table: WorkloadTable) -> Workload:
        """The workload of the plan or of a stage, over the servers that there are."""
        target = self.document.target
        return workload_of(table, self.sources).over(max(1, len(target.servers)), target.share)

    def origin_of(self, stage: str, table: Literal["settings", "host"], name: str) -> Origin:
        """Who chose a value in a table of a stage."""
        by_set = self.set_host if table == "host" else self.set_settings
        return stage_origin(stage, table, name, self.source, by_set)


def read_plan(
    path: str | os.PathLike[str],
    overrides: Sequence[str] = (),
    quick: bool = False,
    aa: bool = False,
    folders: Sequence[str] = (),
) -> PlanDraft:
    """Read and check a plan file.

    Args:
        path: The TOML file.
        overrides: Of `--set`, in order: `a.b=c`.
        quick: Use what `[quick]` changes.
        aa: Measure the first stage twice in every round, to learn the noise floor.
        folders: Absolute paths of `--folder`: stages of `each_folder` are repeated for each.

    Raises:
        PlanError: It cannot be read, or something in it is wrong; everything that is wrong is told.
    """
    source = os.fspath(path)
    text = text_of(
        FilePath(source), f"plan {source}", "Name a TOML file, or a plan of `pgdyno plans`."
    )
    return read_plan_text(
        text, source, FilePath(source).parent, overrides, quick=quick, aa=aa, folders=folders
    )


def read_plan_text(
    text: str,
    source: str,
    folder: FilePath,
    overrides: Sequence[str] = (),
    *,
    quick: bool = False,
    aa: bool = False,
    folders: Sequence[str] = (),
) -> PlanDraft:
    """As `read_plan`, of TOML that has no file.

    Args:
        text: TOML.
        source: What it is called in errors.
        folder: Where the files lie that it names.
        overrides: See `read_plan`, as what follows.
        quick: The plan's own short version.
        aa: The first stage twice.
        folders: See `read_plan`.
    """
    raw, complaints = _raw(text, source, folders)
    parsed = [parse_override(override) for override in overrides]
    complaints += [one for one in parsed if isinstance(one, Complaint)]
    chosen = [one for one in parsed if isinstance(one, Override)]
    quick_by_path, wrong_quick = quick_values(raw)
    complaints += wrong_quick
    if quick and not raw.get("quick"):
        complaints.append(Complaint("--quick", _NO_QUICK))
    final = with_quick(raw, quick_by_path) if quick else raw
    final, wrong_set = apply_overrides(final, chosen)
    complaints += wrong_set
    by_path: dict[Path, str] = dict.fromkeys(quick_by_path, "quick") if quick else {}
    by_path |= {one.path: one.option for one in chosen}
    final = with_profile(final, complaints)
    document = _document(final, by_path, complaints)
    if quick_by_path and not quick:  # a mistake there should not wait for the first --quick
        quick_paths = dict.fromkeys(quick_by_path, "quick")
        _document(with_quick(raw, quick_by_path), quick_paths, complaints)
    clients: tuple[StageClient, ...] = ()
    sources: dict[str, str] = {}
    skipped: dict[str, str] = {}
    if document is not None:
        complaints += [_of_option(one, chosen) for one in _meaning(document, aa)]
        document, skipped = _kept(document)
        by_set = _set_in_stages(chosen, "client")
        clients = stage_clients(
            final.get("workload", {}), document.stage, source, by_set,
            document.protocol.window_s, complaints,
        )  # fmt: skip
        complaints += [*stage_complaints(document, clients), *replica_complaints(document, clients)]
        tables = [document.workload, *(client.table for client in clients)]
        sources = read_sources(tables, folder, complaints)
    refuse(source, complaints)
    assert document is not None
    return PlanDraft(
        document=document, source=source, text=text, quick=quick, aa=aa,
        overrides=tuple(overrides),
        folders=tuple(folders),
        origins=_origins(document, raw, source, set(quick_by_path) if quick else set(), chosen),
        set_settings=_set_in_stages(chosen, "settings"),
        set_host=_set_in_stages(chosen, "host"),
        clients=clients,
        sources=sources,
        skipped=skipped,
        whole_rounds=_whole_rounds(raw, chosen, document) if quick else None,
        ignores_cycles=quick and _ignores_cycles(raw, chosen, document),
    )  # fmt: skip


def _ignores_cycles(
    raw: dict[str, Any], chosen: Sequence[Override], document: PlanDocument
) -> bool:
    """Whether it is `[quick]` that has checkpoints ignored, and the whole plan follows them."""
    by_set = any(one.path == CHECKPOINTS for one in chosen)
    return follows_checkpoints(raw) and document.protocol.checkpoints == "ignore" and not by_set


def _whole_rounds(
    raw: dict[str, Any], chosen: Sequence[Override], document: PlanDocument
) -> int | None:
    """How many rounds the plan has at most without `--quick`, if it stops when it is decided.

    Whoever says by `--set` when it stops has asked for another plan; anchors have no looks.
    """
    whole, short = raw.get("protocol"), document.protocol
    if not isinstance(whole, dict) or whole.get("stop") != "decided":
        return None
    if any(one.path == ("protocol", "stop") for one in chosen) or short.checkpoints == "anchors":
        return None
    rounds = whole.get("rounds")
    is_short = isinstance(rounds, int) and rounds in LOOKS and short.rounds < rounds
    return rounds if is_short and short.stop == "rounds" else None


def _raw(text: str, source: str, folders: Sequence[str]) -> tuple[dict[str, Any], list[Complaint]]:
    """The document as written, its stages of `each_folder` repeated, and what is wrong with that.

    Raises:
        PlanError: It is not TOML.
    """
    try:
        return repeated(parse_toml(text), folders)
    except BadToml as error:
        hint = " ".join(filter(None, (error.hint, "Nothing was touched.")))
        raise PlanError(f"{source}: not TOML: {error}", hint) from error


def _set_in_stages(chosen: Sequence[Override], table: str) -> frozenset[tuple[str, str]]:
    """What --set chose in a table of stages: (stage, key)."""
    return frozenset(
        (one.path[1], one.path[3] if table == "client" else ".".join(one.path[3:]))
        for one in chosen
        if len(one.path) > 3 and one.path[0] == "stage" and one.path[2] == table
    )


def _document(
    raw: dict[str, Any], by_path: Mapping[Path, str], complaints: list[Complaint]
) -> PlanDocument | None:
    """The checked document; what is wrong is added to the complaints, with who chose the value."""
    kind = kind_of(raw.get("workload", {}))
    if isinstance(raw.get("workload", {}), dict) and kind not in TABLES:
        # Its other keys cannot be judged, but those of the other tables can.
        text = f"{shown(raw['workload']['kind'])} is unknown; allowed: {', '.join(TABLES)}"
        moved = Complaint("workload.kind", text)
        complaints += [moved] if moved not in complaints else []
        raw = {key: value for key, value in raw.items() if key != "workload"}
        _document(raw, by_path, complaints)
        return None
    try:
        return PlanDocument.model_validate(raw)
    except ValidationError as error:
        for loc, complaint in complaints_of(error, raw):
            path = _named(loc, raw)
            chooser = next((who for at, who in by_path.items() if path[: len(at)] == at), None)
            moved = complaint
            if chooser == "quick":
                moved = Complaint(f"quick.{complaint.where}", complaint.text)
            elif path in by_path and complaint.where in _OPTIONS:
                moved = replace(complaint, where=_OPTIONS[complaint.where])
            elif chooser is not None:
                moved = Complaint(chooser, f"{complaint.where}: {complaint.text}")
            if moved not in complaints:
                complaints.append(moved)
        return None


def _kept(document: PlanDocument) -> tuple[PlanDocument, dict[str, str]]:
    """The document without the stages that are left out, and what brings each of them in."""
    skipped = {
        stage.name: "--folder" if stage.each_folder else f"--set stage.{stage.name}.skip=false"
        for stage in document.stage
        if stage.skip
    }
    kept = tuple(stage for stage in document.stage if not stage.skip)
    return document.model_copy(update={"stage": kept}), skipped


def _named(loc: tuple[int | str, ...], raw: dict[str, Any]) -> Path:
    """A place in the document with the stage's name for its number, as `--set` has it."""
    if loc[:1] == ("stage",) and len(loc) > 1 and isinstance(loc[1], int):
        stage = raw["stage"][loc[1]]
        name = stage.get("name") if isinstance(stage, dict) else None
        return ("stage", str(name), *map(str, loc[2:]))
    return tuple(map(str, loc))


def _meaning(document: PlanDocument, aa: bool) -> list[Complaint]:
    """What the types alone do not say."""
    complaints = [*_target(document.target), *servers_complaints(document)]
    if document.fleet is not None:
        complaints += fleet_complaints(document.fleet)
    found = impossible(document.workload, document.protocol.window_s)
    complaints += [Complaint(f"workload.{key}", text) for key, text in found]
    given = document.protocol.model_fields_set
    complaints += [
        Complaint(f"protocol.{key}", f'goes with protocol.checkpoints = "{key}", which is missing')
        for key in ("cycles", "anchors")
        if key in given and "checkpoints" not in given
    ]
    names = [stage.name for stage in document.stage]
    if aa:
        names.append(names[0] + TWIN_SUFFIX)
    for name, count in Counter(names).items():
        if count > 1:
            complaints.append(
                Complaint(f"stage {name}", f"{plural(count, 'stage')} have this name")
            )
    if all(stage.skip for stage in document.stage):
        complaints.append(Complaint("stage", "all stages are skipped"))
    for stage in document.stage:
        if stage.build is not None and document.target.kind == "running":
            text = (
                f'{shown(stage.build)} does not go with target.kind = "running", a server that'
                " others start; allowed: embedded and installed"
            )
            complaints.append(Complaint(f"stage {stage.name}: build", text))
        if stage.folder is not None and document.target.kind == "running":
            text = f'{shown(stage.folder)} does not go with target.kind = "running"'
            complaints.append(Complaint(f"stage {stage.name}: folder", text))
        if stage.profile is not None and stage.profile not in profile_names():
            complaints.append(
                Complaint(
                    f"stage {stage.name}: profile",
                    f"{shown(stage.profile)} is unknown; allowed: {', '.join(profile_names())}",
                )
            )
    return complaints


_FOREIGN_KEYS = {
    "embedded": ("bindir", "conninfo", "servers", "replica"),
    "installed": ("conninfo", "servers", "replica"),
    "running": ("bindir", "initdb", "replicas"),
}
_NO_QUICK = (
    "the plan has no table quick; `--set protocol.rounds=3 --set protocol.window_s=5` shortens any"
)
_OPTIONS = {"target.conninfo": "--conninfo", "target.bindir": "--bindir"}
_NEEDED_KEY = {"installed": "bindir", "running": "conninfo"}


def _of_option(complaint: Complaint, chosen: Sequence[Override]) -> Complaint:
    """The same, of the option that somebody typed, and not of a key that no file has."""
    option = _OPTIONS.get(complaint.where)
    if option and complaint.where in {".".join(map(str, one.path)) for one in chosen}:
        return replace(complaint, where=option)
    return complaint


def _target(target: TargetTable) -> list[Complaint]:
    complaints = [
        Complaint(f"target.{key}", f"does not go with target.kind = {shown(target.kind)}")
        for key in _FOREIGN_KEYS[target.kind]
        if getattr(target, key)
    ]
    needed = _NEEDED_KEY.get(target.kind)
    if needed and not getattr(target, needed) and not target.servers:
        complaints.append(
            Complaint(f"target.{needed}", f"is missing, {shown(target.kind)} needs it")
        )
    complaints += [
        Complaint(
            f"target.{key}",
            "holds a password, which would be stored with the results",
            "Set PGPASSWORD, or use ~/.pgpass.",
        )
        for key, named in (
            ("conninfo", (target.conninfo,)),
            ("servers", target.servers),
            ("replica", (target.replica,)),
        )
        if any(one and holds_password(one) for one in named)
    ]
    return complaints


def holds_password(conninfo: str) -> bool:
    """Whether a conninfo or URI names one, so that it must not be stored."""
    if re.search(r"(^|[\s?&])(ssl)?password\s*=", conninfo):
        return True
    try:
        return "://" in conninfo and urlsplit(conninfo).password is not None
    except ValueError:
        return False


def _origins(
    document: PlanDocument,
    raw: dict[str, Any],
    source: str,
    quick: set[Path],
    chosen: Sequence[Override],
) -> dict[str, str]:
    """Who chose each value of target, workload and protocol; `raw` is the plan as written."""
    result: dict[str, str] = {}
    tables = {"target": document.target, "workload": document.workload}
    for name, table in {**tables, "protocol": document.protocol}.items():
        for field, info in type(table).model_fields.items():
            key = info.alias or field
            who = source if key in raw.get(name, {}) else "default"
            if field in table.model_fields_set and who == "default":
                who = f"profile {getattr(table, 'profile', None)}"
            result[f"{name}.{key}"] = who
    for path in quick:
        result[".".join(path)] = "quick"
    for one in chosen:
        if one.path[0] in ("target", "workload", "protocol") and len(one.path) > 1:
            result[".".join(one.path[:2])] = one.option
    return result
