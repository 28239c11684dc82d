"""`--folder a,b`: stages that a plan repeats for each folder."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pgdyno.plan.schema.complaint import Complaint
from pgdyno.plan.schema.plan_file import NAME

KEY = "each_folder"
_OTHER = re.compile(r"[^a-z0-9]+")


def repeated(raw: dict[str, Any], folders: Sequence[str]) -> tuple[dict[str, Any], list[Complaint]]:
    """The document with its stages of `each_folder` once for each folder; not skipped, then.

    One folder leaves their names as they are. Of several, the names end with what tells the folders
    apart: `other-read-only` becomes `other-read-only-a` and `other-read-only-b`; a figure of an
    earlier report, which is of one storage, goes with none of them.

    Args:
        raw: The plan as written.
        folders: Absolute paths; none leaves the plan as it is.
    """
    if not folders:
        return raw, []
    complaints = [
        Complaint("--folder", f"{folder} is named twice")
        for folder in sorted({one for one in folders if folders.count(one) > 1})
    ]
    stages = raw.get("stage", [])
    marked = [one for one in stages if _is_marked(one)] if isinstance(stages, list) else []
    if not marked:
        text = "the plan has no stage that is repeated for each folder"
        hint = f"Write `{KEY} = true` into stages, or use a plan that has it: storage-comparison."
        complaints.append(Complaint("--folder", text, hint))
    if complaints:
        return raw, complaints
    endings = [""] if len(folders) == 1 else _endings(folders, [str(one["name"]) for one in marked])
    result = copy.deepcopy(raw)
    result["stage"] = [
        one
        for stage in result["stage"]
        for one in (_copies(stage, folders, endings) if _is_marked(stage) else [stage])
    ]
    return result, []


def _is_marked(stage: object) -> bool:
    return isinstance(stage, dict) and stage.get(KEY) is True and "name" in stage


def _copies(
    stage: dict[str, Any], folders: Sequence[str], endings: Sequence[str]
) -> list[dict[str, Any]]:
    left = {"skip", "earlier"} if len(folders) > 1 else {"skip"}
    return [
        {
            **{key: value for key, value in copy.deepcopy(stage).items() if key not in left},
            "name": f"{stage['name']}{ending}",
            "folder": folder,
        }
        for folder, ending in zip(folders, endings, strict=True)
    ]


def _endings(folders: Sequence[str], names: Sequence[str]) -> list[str]:
    """The shortest ends of the paths that differ, where they make names; else numbers."""
    parts = [Path(folder).parts[1:] for folder in folders]
    for depth in range(1, max(map(len, parts)) + 1):
        found = [_OTHER.sub("-", "-".join(one[-depth:]).lower()).strip("-") for one in parts]
        fit = all(NAME.fullmatch(f"{name}-{end}") for name in names for end in found)
        if fit and all(found) and len(set(found)) == len(found):
            return [f"-{end}" for end in found]
    return [f"-{number}" for number in range(1, len(folders) + 1)]
