"""A first plan of one's own, from three answers: which server, how much data, which setting."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.api.planning import FROM_PYTHON, load_plan
from pgdyno.catalog.contract import default, require_accepted
from pgdyno.model.durability import LADDER
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.system_errors import reason
from pgdyno.model.text import path_typed, visible
from pgdyno.plan.schema.plan_file import NAME_LETTERS_MAX
from pgdyno.plan.schema.toml import toml_key
from pgdyno.plan.schema.toml_text import value_text
from pgdyno.plan.settings.checkpoints import shapes_cycle
from pgdyno.store.output_file import require_closed, write_new

EMBEDDED = "embedded"
FILE_NAME = "first.toml"
_TEXT = """\
# A first plan, written by `pgdyno init`.
#
#   pgdyno run {path} --dry-run     what it would do; nothing is touched
#   pgdyno run {path} --quick       a first look: four short rounds, {look}
#   pgdyno run {path}
#
# Every key that may stand here: docs/reference/plan.md in the sources of pgdyno.
# Further plans: pgdyno plans.

name = {name}
question = {question}

[target]
{target}

[workload]
kind = "tpcc"
warehouses = {warehouses} # about 100 MB each
connections = {connections}
home = "random" # so that few terminals use all the data and meet each other

[protocol]
stop = "decided" # both stages are measured until a look has decided which is better
rounds = 20
warmup_s = 10
window_s = 30
checkpoints = "cycles" # windows hold whole checkpoint cycles; where those are long, so are windows
cycles = 1
lowest_rung = "{rung}" # what a stage may put at risk: {risk}

[quick.protocol]
stop = "rounds"
rounds = 4 # after which a look may decide
warmup_s = 2
window_s = 5
checkpoints = "ignore"

[[stage]]
name = "baseline"
why = "The server as it is: what the other stage is compared with."

[[stage]]
name = {stage}
why = {why}
settings = {{ {setting} = {value} }}
"""
_SELDOM = "which seldom decide"
_NEVER = """\
which do not judge this setting:
#       what it does is seen over whole checkpoint cycles, which only the whole plan follows"""
_BESIDE_NAMES = re.compile(r"[^a-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class FirstPlan:
    """The three answers.

    Args:
        server: `embedded`, a folder of an installed PostgreSQL's programs, or a connection string.
        warehouses: How much data.
        setting: What is tried, e.g. `synchronous_commit=off`.

    Raises:
        PlanError: There are no warehouses, or more than the core makes rows of.
    """

    server: str = EMBEDDED
    warehouses: int = default("TpccSpec", "warehouses")
    setting: str = "synchronous_commit=off"

    def __post_init__(self) -> None:
        require_accepted("TpccSpec", "warehouses", self.warehouses, "warehouses")

    def text(self, path: str | Path = FILE_NAME) -> str:
        """The plan, as TOML that this host and that server can carry out.

        Args:
            path: What its file will be called; nothing is written.

        Raises:
            PlanError: An answer is wrong.
            TargetError: The server is not there.
        """
        if not str(path).isprintable():
            raise PlanError(f"path {visible(str(path))} holds control characters", "Name another.")
        name, value = self.require_setting()
        stage = _name_of(f"{name}-{value}", "changed")
        said = {
            "name": value_text(_name_of(Path(path).stem, Path(FILE_NAME).stem)),
            "stage": value_text(stage), "path": path_typed(path), "target": self._target(),
            "warehouses": self.warehouses,
            "connections": max(8, 2 * (os.cpu_count() or 1)), "setting": toml_key(name),
            "value": value_text(value.strip("'")),
            "question": value_text(f"What does {name} = {value} change here?"),
            "why": value_text(f"With {name} = {value}."),
            "look": _NEVER if shapes_cycle(name) else _SELDOM,
        }  # fmt: skip
        # The rung that the setting leads to is known once the plan is resolved.
        try:
            resolved = load_plan(tomllib.loads(_TEXT.format(**said, rung="D6", risk="")))
        except (PlanError, TargetError) as error:  # of an answer: nobody has seen a plan yet
            fact = error.fact
            for place in (FROM_PYTHON, f"stage {stage}", "target.bindir", "target.conninfo"):
                fact = fact.removeprefix(f"{place}: ")
            raise type(error)(fact, error.hint) from None
        tried = resolved.stages[-1].settings[-1]
        if tried.value == tried.default:
            raise PlanError(
                f"{name} = {value} is what the server has already: both stages would be the same",
                "Answer with another value.",
            )
        rung = resolved.stages[-1].rung
        return _TEXT.format(**said, rung=rung, risk=LADDER[rung])

    def with_warehouses(self, answer: str) -> FirstPlan:
        """The same with another amount of data.

        Args:
            answer: The number of warehouses, as somebody typed it.

        Raises:
            PlanError: It is no whole number above 0.
        """
        if not answer.isdecimal() or int(answer) == 0:
            raise PlanError(
                f"{visible(answer)} is no number of warehouses", "Answer with 1 or more."
            )
        return replace(self, warehouses=int(answer))

    def require_setting(self) -> tuple[str, str]:
        """The name and the value of the setting; whether a server has it, `text` asks.

        Raises:
            PlanError: It is not written as a name with a value.
        """
        name, equals, value = (part.strip() for part in self.setting.partition("="))
        if not (name and equals and value):
            raise PlanError(
                f"setting {self.setting!r} is not a name with a value",
                "Write it as postgresql.conf has it, e.g. synchronous_commit=off.",
            )
        return name, value

    def require_writable(self, path: str | Path) -> None:
        """Refuse a path where the plan could not be put; ask before the questions.

        Raises:
            PlanError: Something of that name is there.
            StoreError: As root, others could put a link there.
        """
        if os.path.lexists(path):
            raise PlanError(f"{path} exists", "Name another file; nothing is overwritten.")
        require_closed(Path(path))

    def write(self, path: str | Path = FILE_NAME) -> Path:
        """Put the plan there, whole, as `pgdyno init` does; nothing is overwritten.

        Raises:
            PlanError: As `text` and `require_writable`; or it cannot be written.
            StoreError: As `require_writable`.
            TargetError: As `text`.
        """
        text = self.text(path)
        self.require_writable(path)
        try:
            write_new(Path(path), text)
        except FileExistsError:
            self.require_writable(path)  # it came there meanwhile
            raise
        except (OSError, TargetError) as error:
            cause = error.__cause__ if isinstance(error, TargetError) else error
            why = reason(cause) if isinstance(cause, OSError) else str(error)
            raise PlanError(f"{path} cannot be written: {why}") from error
        return Path(path)

    def _target(self) -> str:
        if self.server == EMBEDDED:
            return 'kind = "embedded"'
        if Path(self.server).is_dir():
            bindir = value_text(str(Path(self.server).absolute()))
            return f'kind = "installed"\nbindir = {bindir}'
        if "=" not in self.server and "://" not in self.server:
            raise PlanError(
                f"server {self.server!r} is not embedded, no folder that is there, and no"
                " connection string",
                "Write embedded, a folder such as /usr/lib/postgresql/17/bin, or"
                " 'host=… dbname=…'.",
            )
        return f'kind = "running"\nconninfo = {value_text(self.server)}'


def _name_of(text: str, otherwise: str) -> str:
    """As a plan names itself and its stages: of a text what may stand in a name."""
    name = _BESIDE_NAMES.sub("-", text.lower())[:NAME_LETTERS_MAX].strip("._-")
    return name or otherwise
