"""Statistics of measured windows and plans: pure functions on arrays, no input or output.

How they work, and how often they err, stands in docs/concepts/statistics.md. Distributions are
those of scipy.special: scipy.stats takes most of a second to import, which each command would wait.
"""

from __future__ import annotations

from pgdyno.stats.client_limit import ClientLoad, client_limit
from pgdyno.stats.compare import PlanComparison, compare_plan
from pgdyno.stats.finding import Answer, Clear, Evidence, Finding, Unknown
from pgdyno.stats.noise import NoiseFloor, noise_floor
from pgdyno.stats.steady import Cut, Steadiness, SteadyState, check_window, warmup_cut
from pgdyno.stats.table import Outlier, Table, table_of
from pgdyno.stats.verdict import Comparison, Verdict
from pgdyno.stats.window import Checkpoint, CheckpointFacts, checkpoint_facts

__all__ = [
    "Answer",
    "Checkpoint",
    "CheckpointFacts",
    "Clear",
    "ClientLoad",
    "Comparison",
    "Cut",
    "Evidence",
    "Finding",
    "NoiseFloor",
    "Outlier",
    "PlanComparison",
    "Steadiness",
    "SteadyState",
    "Table",
    "Unknown",
    "Verdict",
    "check_window",
    "checkpoint_facts",
    "client_limit",
    "compare_plan",
    "noise_floor",
    "table_of",
    "warmup_cut",
]
