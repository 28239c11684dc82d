"""The samplers, one file each; a file with a function `sampler` is found by location."""

from __future__ import annotations

import importlib
import pkgutil

from pgdyno.sample.sampler import Sampler, Subject


def samplers_of(subject: Subject) -> list[Sampler]:
    """All samplers that have something to read of this host and server, in order of their files."""
    modules = (
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
    )
    found: list[Sampler | None] = [module.sampler(subject) for module in modules]
    return [one for one in found if one is not None]
