"""Folders of clusters that stages differ by, though one device holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pgdyno.analysis.facts import StageFacts
from pgdyno.model.wording import listed


def on_one_device(stages: Sequence[StageFacts], host: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each device that holds several of the folders.

    Args:
        stages: With the folders of their data.
        host: The manifest of the host, as the report has it.
    """
    by_device: dict[str, list[str]] = {}
    for folder in dict.fromkeys(stage.folder for stage in stages):
        key = f"folders.{folder}.device" if folder else "file_system.device"
        device = host.get(key, "")
        if device.startswith("/"):  # memory has none
            by_device.setdefault(device, []).append(folder or "pgdyno's own folder")
    for device, folders in by_device.items():
        if len(folders) > 1:
            yield (
                f"{listed(folders)} lie on one device, {device}: what differs between stages that"
                " differ by these alone is chance"
            )
