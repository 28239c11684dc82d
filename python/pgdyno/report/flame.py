"""The data of a flame graph, as the page's script wants them: small, and without a name of ours."""

from __future__ import annotations

from typing import Any

from pgdyno.analysis.profile_facts import Tree
from pgdyno.model.profile import KERNEL


def flame_data(tree: Tree) -> dict[str, Any]:
    """A tree for `flame.js`: a table of modules, functions, nodes, and values by stage."""
    modules = list(dict.fromkeys(module for _, module in tree.functions))
    return {
        "unit": tree.unit,
        "modules": modules,
        "kernel": modules.index(KERNEL) if KERNEL in modules else -1,
        "functions": [[name, modules.index(module)] for name, module in tree.functions],
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
