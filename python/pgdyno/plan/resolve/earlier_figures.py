"""The figures of an earlier report in a plan: whether they can be what they are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.model.plan import EarlierReport
from pgdyno.model.workload import Workload
from pgdyno.plan.resolve.figure_checks import mistyped, repeated
from pgdyno.plan.schema.complaint import Complaint
from pgdyno.plan.schema.plan_file import FiguresTable, PlanDocument, StageTable

_OF_HEADLINE = {"NOPM": ("nopm", "tpm_total"), "tps": ("tps",)}
_HINT = "Look the figures up in their source."


def earlier_of(document: PlanDocument) -> EarlierReport | None:
    """Where the figures of the stages come from."""
    table = document.earlier
    return None if table is None else EarlierReport(table.source, table.machine, table.runs)


def figures_of(table: FiguresTable) -> dict[str, float]:
    """The figures of a stage that are given."""
    return {name: float(value) for name, value in table if value is not None}


def earlier_complaints(document: PlanDocument, workloads: Sequence[Workload]) -> list[Complaint]:
    """What is wrong with the figures.

    Args:
        document: The plan, without the stages that are left out.
        workloads: What each stage drives.
    """
    complaints: list[Complaint] = []
    named: dict[str, dict[str, float]] = {}
    for stage, workload in zip(document.stage, workloads, strict=True):
        figures = figures_of(stage.earlier)
        complaints += [
            Complaint(f"stage {stage.name}: earlier", text, _HINT)
            for text in _wrong(stage, figures, workload, document)
        ]
        for metric, value in figures.items():
            named.setdefault(metric, {})[stage.name] = value
    for metric, figures in named.items():
        complaints += [
            Complaint(
                f"stage {copy}: earlier.{metric}",
                f"{value:.15g} is that of {original} to the digit; two measurements never agree so",
                _HINT,
            )
            for original, copy, value in repeated(figures)
        ]
    return complaints


def _wrong(
    stage: StageTable, figures: dict[str, float], workload: Workload, document: PlanDocument
) -> Iterator[str]:
    if figures and document.earlier is None:
        yield "has figures, but the plan has no table earlier that says where they come from"
    allowed = _OF_HEADLINE[workload.headline]
    for metric in figures:
        if metric not in allowed:
            yield f"{metric} is not measured with {workload.kind}; allowed: {', '.join(allowed)}"
    if workload.tpcc is not None and {"nopm", "tpm_total"} <= figures.keys():
        mix = workload.tpcc.mix
        share = mix["new_order"] / sum(mix.values())
        if problem := mistyped(figures["nopm"], figures["tpm_total"], share):
            weights = ", ".join(f"{kind} = {weight:g}" for kind, weight in mix.items())
            yield f"{problem} ({weights})"
