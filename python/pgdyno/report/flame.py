"""The data of a flame graph, as the page's script wants them: small, and without a name of ours."""

from __future__ import annotations

from typing import Any

from pgdyno.analysis.profile_facts import Tree
from pgdyno.model.profile import DRIVER, KERNEL, KERNEL_THREADS

_ROLES = {
    "backend": "sessions (backends)",
    "checkpointer": "checkpointer",
    "background_writer": "background writer",
    "wal_writer": "WAL writer",
    "io_worker": "I/O workers",
    "autovacuum": "autovacuum",
    "walsender": "WAL senders",
    "startup": "startup process",
    "other": "postmaster and others",
    DRIVER: "load generator",
    KERNEL_THREADS: "kernel threads",
}


def role_text(role: str) -> str:
    """A role of processes, in words; whatever is none stays as it is."""
    return _ROLES.get(role, role)


def flame_data(tree: Tree) -> dict[str, Any]:
    """A tree for `flame.js`: a table of modules, functions, nodes, and values by stage."""
    modules = list(dict.fromkeys(module for _, module in tree.functions))
    return {
        "unit": tree.unit,
        "modules": modules,
        "kernel": modules.index(KERNEL) if KERNEL in modules else -1,
        "functions": [
            [name if module else role_text(name), modules.index(module)]
            for name, module in tree.functions
        ],
        "parents": list(tree.parents),
        "names": list(tree.names),
        "quantile": round(tree.quantile, 3),
        "stages": [
            {
                "name": one.stage,
                "whole": float(f"{one.whole:.5g}"),
                "values": list(one.values),
                "errors": [float(f"{error:.2g}") for error in one.errors],
            }
            for one in tree.branches
        ],
    }
