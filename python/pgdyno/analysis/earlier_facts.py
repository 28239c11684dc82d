"""Figures of an earlier report beside ours, as frozen records."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EarlierFigures:
    """A figure of an earlier report and ours, each against the first stage that has both.

    Machines and versions differ, so that only the ratios can be held against each other.
    """

    stage: str
    metric: str  # nopm | tpm_total | tps: never one for another
    base: str
    earlier: float
    earlier_ratio: float
    now: float | None  # median of rounds
    now_ratio: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class EarlierReportFacts:
    """An earlier report beside this one."""

    source: str
    machine: str
    runs: int  # behind each of its figures
    figures: tuple[EarlierFigures, ...]
