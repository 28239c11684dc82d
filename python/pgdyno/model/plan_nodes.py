"""Plans as EXPLAIN (FORMAT JSON) has them: a node is a table of properties, with nodes below it."""

from __future__ import annotations

from typing import Any

TYPE, BELOW = "Node Type", "Plans"
OF_SHAPE = ("Operation", "Join Type", "Relation Name", "Index Name", "Strategy")
"""Properties that a plan's one line has beside the types of its nodes."""

Node = dict[str, Any]
