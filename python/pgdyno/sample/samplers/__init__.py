"""The samplers, one file each; a file with a function `sampler` is found by location."""

from __future__ import annotations

from pgdyno.model.by_location import modules_of
from pgdyno.sample.sampler import Sampler, Subject


def samplers_of(subject: Subject) -> list[Sampler]:
    """All samplers that have something to read of this host and server, in order of their files."""
    found: list[Sampler | None] = [module.sampler(subject) for module in modules_of(__name__)]
    return [one for one in found if one is not None]
