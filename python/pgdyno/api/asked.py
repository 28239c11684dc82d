"""What is to be driven without a plan: wishes that fit the workload, and what the data say."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pgdyno.catalog.contract import default, limits, most, require_accepted
from pgdyno.loader.consistency import loaded_workload
from pgdyno.loader.pgbench_tables import branches
from pgdyno.model.bounds import require_within
from pgdyno.model.connection import Connection
from pgdyno.model.errors import PlanError
from pgdyno.model.plan import WINDOW_MIN_S
from pgdyno.model.workload import (
    CONNECTIONS,
    TEXT_MIX,
    Arrivals,
    Data,
    Delivery,
    Engine,
    Face,
    Home,
    Isolation,
    Mix,
    Pgbench,
    Rules,
    Script,
    SourceFile,
    Tpcc,
    Workload,
    WorkloadKind,
)
from pgdyno.plan.schema.pgbench_limits import unmapped
from pgdyno.plan.schema.sources import check_mix, text_of
from pgdyno.plan.schema.workload_table import path_and_weight

SEEDS = 1 << 31
"""Fresh ones are so few that a person can type them again; the core takes any of 64 bits."""

_ONLY_FOR = {
    "mix": ("tpcc",),
    "rules": ("tpcc",),
    "delivery": ("tpcc",),
    "home": ("tpcc",),
    "keying": ("tpcc",),
    "think": ("tpcc",),
    "file": ("mix", "script"),
    "files": ("script",),
    "variables": ("script",),
    "scale": ("mix", "script"),
}
_FACE: Face = default("TpccSpec", "face")
_ISOLATION: Isolation = default("TpccSpec", "isolation")
_BOUNDED = {
    "connections": ("DriveSpec", "connections"),
    "terminals": ("DriveSpec", "terminals"),
    "threads": ("DriveSpec", "threads"),
    "seed": ("TpccSpec", "seed"),
    "rate": ("DriveSpec", "arrivals.per_s"),
    "requests": ("DriveSpec", "requests_max"),
    "keying": ("TpccSpec", "keying_multiplier"),
    "think": ("TpccSpec", "think_multiplier"),
    "scale": ("PgbenchSpec", "scale"),
}
"""Where the core says how large a number may be."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for; None or empty where nothing was."""

    kind: WorkloadKind
    file: Path | None = None  # mix, script
    connections: int = CONNECTIONS
    terminals: int | None = None  # None: one a connection
    threads: int | None = None  # of the driver; None: one for four connections, at most the cores
    face: Face = _FACE
    isolation: Isolation = _ISOLATION
    seed: int | None = None  # of the requests; None: another one each time
    databases: int = 1  # NAME, NAME_2, ..., loaded alike
    rate: float | None = None  # requests a second, answered or not; None: closed loop
    poisson: bool = False  # with a rate: at random intervals
    requests: int | None = None  # of each terminal
    mix: Mapping[str, float] | None = None  # tpcc: weights by kind
    rules: Rules | None = None  # tpcc
    delivery: Delivery | None = None  # tpcc
    home: Home | None = None  # tpcc
    keying: float | None = None  # tpcc: times the text's keying times
    think: float | None = None  # tpcc
    files: tuple[str, ...] = ()  # script: FILE[@WEIGHT]
    variables: Mapping[str, int | float | str | bool] = field(default_factory=dict)  # script
    scale: int | None = None  # mix, script: the variable :scale
    engine: Engine = "pgdyno"
    bindir: Path | None = None  # of pgbench
    spelled: Callable[[str], str] = str  # how whoever asked writes the name of a wish

    def refuse_strangers(self) -> None:
        """Refuse wishes that do not fit each other, before any server is asked.

        Raises:
            PlanError: Naming the first of them.
        """
        named = self.spelled
        for name, kinds in _ONLY_FOR.items():
            if getattr(self, name) not in (None, (), {}) and self.kind not in kinds:
                raise PlanError(
                    f"{named(name)} does not go with {self.kind}",
                    f"It is for {' and '.join(kinds)}.",
                )
        if self.kind == "mix" and self.file is None:
            raise PlanError("mix needs a file", "Name it: `pgdyno bench mix FILE.toml`.")
        if self.kind == "script" and not self.sources:
            raise PlanError("script needs a file", "Name it: `pgdyno bench script FILE.sql`.")
        self._refuse_beyond()
        self._refuse_rate()
        if self.bindir is not None and self.engine == "pgdyno":
            raise PlanError(
                f"{named('bindir')} needs {named('engine')} pgbench",
                "Our own driver needs no programs.",
            )
        if self.terminals is not None and self.terminals < self.connections:
            raise PlanError(
                f"{named('terminals')} {self.terminals} are fewer than {named('connections')}"
                f" {self.connections}",
                "Connections without a terminal would never be used.",
            )

    def _refuse_beyond(self) -> None:
        named = self.spelled
        for name, (shape, key) in _BOUNDED.items():
            require_accepted(shape, key, getattr(self, name), named(name))
        parts = most("DriveSpec", "parts")
        require_within(
            named("databases"), self.databases, 1, parts, "Each is driven by its own terminals."
        )

    def require_windows(self, seconds: float, warmup: float) -> None:
        """Refuse windows that are too short to tell anything, or longer than the driver counts.

        Args:
            seconds: Of a window.
            warmup: Before it.

        Raises:
            PlanError: Naming the first of the two that is.
        """
        named = self.spelled
        require_within(
            named("seconds"), seconds, WINDOW_MIN_S, limits("DriveSpec", "window_s")[1],
            "Shorter windows tell nothing of a server, and longer ones are not counted.",
        )  # fmt: skip
        require_accepted("DriveSpec", "warmup_s", warmup, named("warmup"))

    def _refuse_rate(self) -> None:
        named = self.spelled
        if self.poisson and self.rate is None:
            raise PlanError(
                f"{named('poisson')} needs {named('rate')}", "Say how many requests a second."
            )
        for name in ("requests", "keying", "think"):
            if self.rate is not None and getattr(self, name):
                raise PlanError(
                    f"{named(name)} does not go with {named('rate')}",
                    "A rate says when requests come, whatever terminals do.",
                )

    @property
    def sources(self) -> tuple[str, ...]:
        """Files with their weights."""
        return (*([str(self.file)] if self.file else []), *self.files)


def workload_of(asked: Asked, connection: Connection) -> tuple[Workload, dict[str, int] | None]:
    """The workload for a loaded database, and the constants that TPC-C's data were loaded with.

    Raises:
        PlanError: A file cannot be read, or weights are not understood.
        CheckError: The database does not hold what the workload needs.
    """
    tpcc = pgbench = mix = script = c_load = None
    if asked.kind == "tpcc":
        tpcc, c_load = _tpcc(asked, connection)
    elif asked.kind == "mix":
        file = next(_read(asked))
        check_mix(file.path, file.text)
        mix = Mix(file, Data("none", _any_scale(asked, connection)))
    elif asked.kind == "script":
        scale = _any_scale(asked, connection)
        script = Script(tuple(_read(asked)), Data("none", scale), dict(asked.variables))
    else:
        pgbench = Pgbench(_scale(connection))
    workload = Workload(
        kind=asked.kind,
        seed=_fresh_seed() if asked.seed is None else asked.seed,
        engine=asked.engine,
        face=asked.face,
        isolation=asked.isolation,
        connections=asked.connections,
        terminals=asked.terminals or asked.connections,
        threads=asked.threads,
        arrivals=_arrivals(asked),
        databases=asked.databases,
        requests_max=asked.requests,
        tpcc=tpcc,
        pgbench=pgbench,
        mix=mix,
        script=script,
    )
    for one in unmapped(workload):
        raise PlanError(f"{one.key}: {one.text}", f"Allowed: {one.allowed}.")
    return workload, c_load


def _fresh_seed() -> int:
    """Another one each time.

    Who drives a database twice with the same requests finds the rows of the first time moved
    together, and measures a smaller database.
    """
    return secrets.randbelow(SEEDS)


def _arrivals(asked: Asked) -> Arrivals:
    if asked.rate is None:
        return Arrivals()
    return Arrivals("open", asked.rate, "poisson" if asked.poisson else "even")


def _tpcc(asked: Asked, connection: Connection) -> tuple[Tpcc, dict[str, int]]:
    loaded = loaded_workload(connection)
    tpcc = Tpcc(
        warehouses=loaded.warehouses,
        schema=loaded.schema,
        rules=_usual(asked.rules, "rules"),
        foreign_keys=loaded.foreign_keys,
        mix=dict(TEXT_MIX) if asked.mix is None else _weights(asked.mix),
        delivery=_delivery(asked),
        home=_usual(asked.home, "home"),
        keying_multiplier=_usual(asked.keying, "keying_multiplier"),
        think_multiplier=_usual(asked.think, "think_multiplier"),
    )
    return tpcc, loaded.c_load


def _delivery(asked: Asked) -> Delivery:
    if asked.delivery is None and asked.rules == "benchmarksql-5":
        return "inline"
    found: Delivery = _usual(asked.delivery, "delivery")
    return found


def _usual(wish: float | str | None, key: str) -> Any:  # noqa: ANN401  as the key's type
    """What was asked for, or what the core takes where nothing was."""
    return default("TpccSpec", key) if wish is None else wish


def _weights(mix: Mapping[str, float]) -> dict[str, float]:
    if strangers := [name for name in mix if name not in TEXT_MIX]:
        raise PlanError(
            f"mix names {strangers[0]!r}, allowed are {', '.join(TEXT_MIX)}",
            "Kinds that are not named do not occur.",
        )
    return {kind: mix.get(kind, 0.0) for kind in TEXT_MIX}


def _any_scale(asked: Asked, connection: Connection) -> int:
    return asked.scale or branches(connection) or 1


def _scale(connection: Connection) -> int:
    found = branches(connection)
    if not found:
        raise PlanError(
            f"database {connection.database} has no branches in a table pgbench_branches",
            "Load it first: `pgdyno load tpcb --conninfo …` or `pgbench -i`.",
        )
    return found


def _read(asked: Asked) -> Iterator[SourceFile]:
    for source in asked.sources:
        path, weight = path_and_weight(source)
        yield SourceFile(path, text_of(Path(path), path, "Is it there?"), weight)
