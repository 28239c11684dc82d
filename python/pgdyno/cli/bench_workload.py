"""What `pgdyno bench` was asked to drive: options that fit the workload, and what the data say."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pgdyno.load.consistency import loaded_workload
from pgdyno.load.pgbench import branches
from pgdyno.model.connection import Connection
from pgdyno.model.errors import PlanError
from pgdyno.model.workload import (
    TEXT_MIX,
    Arrivals,
    Data,
    Engine,
    Face,
    Mix,
    Pgbench,
    Script,
    SourceFile,
    Tpcc,
    Workload,
)
from pgdyno.plan.engine import unmapped
from pgdyno.plan.sources import check_mix, path_and_weight, text_of

SEEDS = 1 << 31


class Drivable(StrEnum):
    """Workloads that can be driven."""

    tpcc = "tpcc"
    tpcb = "tpcb"
    select_only = "select-only"
    simple_update = "simple-update"
    mix = "mix"
    script = "script"


_OPTIONS = {
    "mix": (Drivable.tpcc,),
    "rules": (Drivable.tpcc,),
    "delivery": (Drivable.tpcc,),
    "home": (Drivable.tpcc,),
    "keying": (Drivable.tpcc,),
    "think": (Drivable.tpcc,),
    "file": (Drivable.mix, Drivable.script),
    "files": (Drivable.script,),
    "variables": (Drivable.script,),
    "scale": (Drivable.mix, Drivable.script),
}


@dataclass(frozen=True, slots=True)
class Given:
    """The options, as given; None or empty where nothing was."""

    kind: Drivable
    file: Path | None
    connections: int
    terminals: int | None
    threads: int | None
    face: Face
    isolation: str
    seed: int | None
    databases: int
    rate: float | None
    poisson: bool
    requests: int | None
    mix: str | None
    rules: str | None
    delivery: str | None
    home: str | None
    keying: float | None
    think: float | None
    files: tuple[str, ...]
    variables: tuple[str, ...]
    scale: int | None
    engine: Engine = "pgdyno"
    bindir: Path | None = None

    def refuse_strangers(self) -> None:
        """Refuse options that do not fit each other, before any server is asked.

        Raises:
            PlanError: Naming the first of them.
        """
        for option, kinds in _OPTIONS.items():
            if getattr(self, option) not in (None, ()) and self.kind not in kinds:
                name = {"file": "a file", "files": "--file", "variables": "--define"}.get(
                    option, f"--{option}"
                )
                raise PlanError(
                    f"{name} does not go with {self.kind}", f"It is for {' and '.join(kinds)}."
                )
        if self.kind is Drivable.mix and self.file is None:
            raise PlanError("mix needs a file", "Name it: `pgdyno bench mix FILE.toml`.")
        if self.kind is Drivable.script and not self.sources:
            raise PlanError("script needs a file", "Name it: `pgdyno bench script FILE.sql`.")
        self._refuse_rate()
        if self.bindir is not None and self.engine == "pgdyno":
            raise PlanError("--bindir needs --engine pgbench", "Our own driver needs no programs.")
        if self.terminals is not None and self.terminals < self.connections:
            raise PlanError(
                f"--terminals {self.terminals} are fewer than --connections {self.connections}",
                "Connections without a terminal would never be used.",
            )

    def _refuse_rate(self) -> None:
        if self.poisson and self.rate is None:
            raise PlanError("--poisson needs --rate", "Say how many requests a second.")
        for option in ("requests", "keying", "think"):
            if self.rate is not None and getattr(self, option):
                raise PlanError(
                    f"--{option} does not go with --rate",
                    "A rate says when requests come, whatever terminals do.",
                )
        if self.rate is not None and not 0.001 <= self.rate <= 1e7:
            raise PlanError(f"--rate is {self.rate:g}, allowed are 0.001 to 10000000")

    @property
    def sources(self) -> tuple[str, ...]:
        """Files with their weights."""
        return (*([str(self.file)] if self.file else []), *self.files)


def bench_workload(given: Given, connection: Connection) -> tuple[Workload, dict[str, int] | None]:
    """The workload for a loaded database, and the constants that TPC-C's data were loaded with.

    Raises:
        PlanError: A file cannot be read, or weights are not understood.
        CheckError: The database does not hold what the workload needs.
    """
    tpcc = pgbench = mix = script = c_load = None
    if given.kind is Drivable.tpcc:
        tpcc, c_load = _tpcc(given, connection)
    elif given.kind is Drivable.mix:
        file = next(_read(given))
        check_mix(file.path, file.text)
        mix = Mix(file, Data("none", _any_scale(given, connection)))
    elif given.kind is Drivable.script:
        scale = _any_scale(given, connection)
        script = Script(tuple(_read(given)), Data("none", scale), _variables(given.variables))
    else:
        pgbench = Pgbench(_scale(connection))
    workload = Workload(
        kind=given.kind.value,
        seed=_fresh_seed() if given.seed is None else given.seed,
        engine=given.engine,
        face=given.face,
        isolation=given.isolation,
        connections=given.connections,
        terminals=given.terminals or given.connections,
        threads=given.threads,
        arrivals=_arrivals(given),
        databases=given.databases,
        requests_max=given.requests,
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


def _arrivals(given: Given) -> Arrivals:
    if given.rate is None:
        return Arrivals()
    return Arrivals("open", given.rate, "poisson" if given.poisson else "even")


def _tpcc(given: Given, connection: Connection) -> tuple[Tpcc, dict[str, int]]:
    loaded = loaded_workload(connection)
    as_benchmarksql = given.rules == "benchmarksql-5"
    tpcc = Tpcc(
        warehouses=loaded.warehouses,
        schema=loaded.schema,
        rules="benchmarksql-5" if as_benchmarksql else "text",
        foreign_keys=loaded.foreign_keys,
        mix=dict(TEXT_MIX) if given.mix is None else _weights(given.mix),
        delivery="inline" if _inline(given, as_benchmarksql) else "deferred",
        home="random" if given.home == "random" else "fixed",
        keying_multiplier=given.keying or 0.0,
        think_multiplier=given.think or 0.0,
    )
    return tpcc, loaded.c_load


def _inline(given: Given, as_benchmarksql: bool) -> bool:
    return as_benchmarksql if given.delivery is None else given.delivery == "inline"


def _weights(text: str) -> dict[str, float]:
    try:
        pairs = [part.split("=") for part in text.split(",")]
        weights = {name.strip(): float(weight) for name, weight in pairs}
    except ValueError as error:
        raise PlanError(
            f"mix {text!r} is not understood", "Write it as new_order=45,payment=43."
        ) from error
    if strangers := [name for name in weights if name not in TEXT_MIX]:
        raise PlanError(
            f"mix names {strangers[0]!r}, allowed are {', '.join(TEXT_MIX)}",
            "Kinds that are not named do not occur.",
        )
    return dict.fromkeys(TEXT_MIX, 0.0) | weights


def _any_scale(given: Given, connection: Connection) -> int:
    return given.scale or branches(connection) or 1


def _variables(texts: Iterable[str]) -> dict[str, int | float | str | bool]:
    found: dict[str, int | float | str | bool] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise PlanError(f"--define {text} is not understood", "Write it as NAME=VALUE.")
        try:
            found[name] = int(value) if value.lstrip("+-").isdecimal() else float(value)
        except ValueError:
            found[name] = value
    return found


def _scale(connection: Connection) -> int:
    found = branches(connection)
    if not found:
        raise PlanError(
            f"database {connection.database} has no branches in a table pgbench_branches",
            "Load it first: `pgdyno load tpcb --conninfo …` or `pgbench -i`.",
        )
    return found


def _read(given: Given) -> Iterator[SourceFile]:
    for source in given.sources:
        path, weight = path_and_weight(source)
        yield SourceFile(path, text_of(Path(path), path, "Is it there?"), weight)
