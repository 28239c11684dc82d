"""Folders of clusters that stages differ by, though one file system or disk holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from pgdyno.analysis.facts import Comparison, StageFacts
from pgdyno.analysis.words import flat
from pgdyno.model.file_system import IN_MEMORY
from pgdyno.model.manifest import HostManifest
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.shared_storage import ITSELF, OWN_FOLDER, Lies, on_one_storage
from pgdyno.stats.looks import Unjudged
from pgdyno.stats.verdict import Verdict


def on_one_device(stages: Sequence[StageFacts], host: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each file system and each disk that holds several of the folders.

    Args:
        stages: With the folders of their data.
        host: The manifest of the host, as the report has it.
    """
    named = dict.fromkeys(stage.folder for stage in stages)
    return on_one_storage([_lies(folder, host) for folder in named])


def on_one_file_system(folders: Iterable[str | None], host: Mapping[str, str]) -> bool:
    """Whether one file system holds the data of all of these, None is pgdyno's own.

    Args:
        folders: Of stages.
        host: The manifest of the host, as the report has it.
    """
    held = {_lies(folder, host).file_system for folder in folders}
    return len(held) == 1 and held != {None}


def disks_below(host: HostManifest) -> Callable[[str | None], tuple[str, ...]]:
    """Says of a stage's folder, None is pgdyno's own, which whole disks hold it; (): not known."""
    manifest = flat(asdict(host))
    return lambda folder: _lies(folder, manifest).disks


def kept_in_memory(host: HostManifest) -> Callable[[str | None], bool]:
    """Says of a stage's folder, None is pgdyno's own, whether it is no disk but memory."""
    manifest = flat(asdict(host))
    return lambda folder: _kind(folder, manifest) in IN_MEMORY


def against_itself(plan: Plan, host: HostManifest) -> Unjudged:
    """Says of two stages why storage is compared with itself between them; None: it is not."""
    manifest = flat(asdict(host))

    def reason(stage: str, base: str) -> str | None:
        one, other = plan.stage(stage), plan.stage(base)
        if one.folder == other.folder or not _alike_but_for_folders(one, other):
            return None
        there = [_lies(each.folder, manifest) for each in (other, one)]
        if there[0].file_system is None or there[0].file_system != there[1].file_system:
            return None
        return f"one file system holds these data and those of {base}, so that {ITSELF}"

    return reason


def is_against_itself(found: Comparison) -> bool:
    """Whether a comparison is not judged for that, so that no round will tell anything."""
    return found.verdict == Verdict.NOT_JUDGED.value and found.reason.endswith(ITSELF)


def _of(folder: str | None, host: Mapping[str, str], name: str) -> str:
    key = f"folders.{folder}" if folder else "file_system"
    return host.get(f"{key}.{name}", "")


def _kind(folder: str | None, host: Mapping[str, str]) -> str:
    return _of(folder, host, "type")


def _lies(folder: str | None, host: Mapping[str, str]) -> Lies:
    kind = _kind(folder, host)
    device, mount, disks = (_of(folder, host, name) for name in ("device", "mount", "disks"))
    file_system = device if device.startswith("/") else None
    if kind in IN_MEMORY and mount:  # it has no device; what is mounted there tells it from others
        file_system = f"{kind} at {mount}"
    return Lies(folder or OWN_FOLDER, file_system, tuple(filter(None, disks.split(", "))))


def _alike_but_for_folders(one: Stage, other: Stage) -> bool:
    """Whether two stages differ by nothing that their figures could come from but the folder."""
    as_other = replace(
        one, name=other.name, why=other.why, afresh=other.afresh, folder=other.folder,
        rung=other.rung, rung_reason=other.rung_reason, durability=other.durability,
        twin_of=other.twin_of, earlier=other.earlier, expects=other.expects,
        settings=other.settings, host=other.host,
    )  # fmt: skip
    return as_other == other and one.values == other.values
