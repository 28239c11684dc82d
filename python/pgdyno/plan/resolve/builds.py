"""Which build each stage runs on: named by a stage, and in force until one begins afresh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pgdyno.model.build import Build
from pgdyno.model.errors import PlanError
from pgdyno.model.settings import ServerFacts
from pgdyno.plan.schema.complaint import Complaint, leave_out, refuse, shown
from pgdyno.plan.schema.read import PlanDraft

_PREFIX_LETTERS_MIN = 4
_HINT = "`pgdyno build SOURCE` makes one, `pgdyno builds list` shows them."


@dataclass(frozen=True, slots=True)
class Builds:
    """The builds that the stages of a plan run on, and what their servers are."""

    of_stages: tuple[Build | None, ...] = ()  # in their order; empty: none names one
    facts: Mapping[str, ServerFacts] = field(default_factory=dict)  # by ident

    def server(self, build: Build | None, own: ServerFacts) -> ServerFacts:
        """What a stage runs on: this build, or the target's own installation."""
        return own if build is None else self.facts[build.ident]


NO_BUILDS = Builds()


def find_build(word: str, builds: Sequence[Build]) -> Build:
    """The one build that a word means: its name, or the first characters of its ident.

    Raises:
        PlanError: It means none, or several.
    """
    found = [build for build in builds if build.name == word]
    if not found and len(word) >= _PREFIX_LETTERS_MIN:
        found = [build for build in builds if build.ident.startswith(word)]
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(build.ident for build in found)
        raise PlanError(f"build {shown(word)} means several: {several}")
    there = ", ".join(build.label for build in builds) or "none"
    raise PlanError(f"build {shown(word)} is unknown; there are: {there}", _HINT)


def stage_builds(draft: PlanDraft, builds: Sequence[Build], cpu: str) -> tuple[Build | None, ...]:
    """The build of each stage; None: the target's own installation.

    Args:
        draft: From `read_plan`.
        builds: Those that are there.
        cpu: The model of this machine's CPU.

    Raises:
        PlanError: A stage names one that is not there, or that cannot run here.
    """
    complaints: list[Complaint] = []
    result: list[Build | None] = []
    build: Build | None = None
    for stage in draft.document.stage:
        if stage.afresh:
            build = None
        if stage.build is not None:
            try:
                build = find_build(stage.build, builds)
            except PlanError as error:
                hint = f"{error.hint} {leave_out(stage.name)}" if error.hint else None
                complaints.append(Complaint(f"stage {stage.name}", error.fact, hint))
                continue
            if build.cpu not in (None, cpu):
                text = f"build {build.label} was compiled for {build.cpu}, this machine is {cpu}"
                complaints.append(Complaint(f"stage {stage.name}", text))
        result.append(build)
    refuse(draft.source, complaints)
    return tuple(result)
