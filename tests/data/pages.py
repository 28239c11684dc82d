"""Pages of every kind of report, made up: what a browser is shown besides a plan's usual page.

The figures are invented. What varies between pages is what decides whether they fit: how many
columns and stages there are, how long names are, which sections have something to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pgdyno.analysis.answer_facts import TailFacts
from pgdyno.analysis.calibration import calibration_facts
from pgdyno.analysis.curve import curve_facts
from pgdyno.analysis.cycle_facts import (
    AnchorFacts,
    CycleFacts,
    VacuumCost,
    VacuumFacts,
    VacuumTable,
)
from pgdyno.analysis.disk_facts import (
    Advice,
    DiskInUse,
    NotForThisLoad,
    NotKnown,
    StepAnswers,
    StorageInUse,
)
from pgdyno.analysis.drill import drill_facts
from pgdyno.analysis.earlier_facts import EarlierFigures, EarlierReportFacts
from pgdyno.analysis.facts import (
    Deviation,
    Difference,
    Facts,
    Judgement,
    MistakeFacts,
    Outage,
    PartFacts,
    RecoveryFacts,
    Spread,
    StageFacts,
    StepFacts,
)
from pgdyno.analysis.hosts import fleet_facts
from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.proof import proof_facts
from pgdyno.analysis.replaced import ReplacedFacts
from pgdyno.analysis.replica_facts import Levels, ReplicaRow
from pgdyno.analysis.resource_facts import ProcessRow, ProcessUse
from pgdyno.analysis.run import analyse
from pgdyno.analysis.server_facts import ServerRow, ServersFacts, UnlikeSetting
from pgdyno.analysis.setting_facts import ServerSetting
from pgdyno.analysis.snapshot_facts import StatementRow, TableRow
from pgdyno.analysis.storage import storage_facts
from pgdyno.analysis.storage_steps import STEPS
from pgdyno.analysis.wal_facts import StageWal, WalPart, WalShares, WalTransactions
from pgdyno.analysis.window_facts import StageWindows
from pgdyno.api.imports import import_results
from pgdyno.diagnosis.stages import diagnose_stages
from pgdyno.model.calibration import Calibrated, Machine, Round
from pgdyno.model.floor_figures import Span
from pgdyno.model.knee import Knee, Point
from pgdyno.model.run import PgbenchStatement, PgbenchSummary, TrialRecord, TrialState
from pgdyno.model.workload import Face, Tpcc, Workload
from pgdyno.report import ceiling, climb, curve, drill, html, proof, storage
from pgdyno.store import RunFile
from tests.data import climbs, drills, proofs
from tests.data.counted import GROWN, USED, plans
from tests.data.curves import CURVE, KEPT
from tests.data.hostile import ENDS
from tests.data.hosts import DRIVEN
from tests.data.imported import FOLDER
from tests.data.looked_at import looked_at
from tests.data.miniature import CHARACTERS, a_result, write_miniature
from tests.data.over_time import over_time
from tests.data.probed import MEMORY, floor, probed
from tests.data.servers_result import NAMES
from tests.data.views import with_views
from tests.data.windows import PLANTED

MS = 1_000_000
LONG = "wal-compression-and-full-page-writes-with-checksums-of-the-second-disk-array"
ENGINE = "pgbench (PostgreSQL) 18.6"
SAID = PgbenchSummary(
    ENGINE, 1_234_567, 1_000, 33_333, 98_765.4, 0.0101, 0.0033, 0.0021,
    (PgbenchStatement("tpcb", "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid"
                      " = :aid;", 0.002, 1_000, 33_333),),
)  # fmt: skip


def facts_of(folder: Path, **options: object) -> Facts:
    """The facts of a miniature written with these options."""
    written = write_miniature(folder / "run.sqlite", **options)  # type: ignore[arg-type]
    with RunFile.read(written) as run:
        return analyse(run)


def plan(folder: Path) -> str:
    """Three stages in three rounds, as in most tests."""
    return html.render(facts_of(folder))


def decided(folder: Path) -> str:
    """Clean rounds, enough of them."""
    return html.render(facts_of(folder, rounds=6, invalid=()))


def stopped(folder: Path) -> str:
    """Broken off in its second round."""
    planned = tuple(range(5, 10))
    return html.render(facts_of(folder, invalid=(), failed=(3,), planned=planned))


def beside_others(folder: Path) -> str:
    """Results of other tools, of many clients and of another database."""
    path = write_miniature(folder / "run.sqlite")
    names = ("field-six-stages.txt", "benchmarksql-5.0-console-oracle.txt", "hammerdb-4.9-cli.txt")
    import_results([FOLDER / name for name in names], into=path)
    with RunFile.read(path) as run:
        return html.render(analyse(run))


def nothing(folder: Path) -> str:
    """No trial was reached."""
    return html.render(facts_of(folder, invalid=(), planned=tuple(range(1, 10))))


def against_itself(folder: Path) -> str:
    """A/A: a stage twice."""
    twin = replace(
        CHARACTERS[0],
        stage=replace(CHARACTERS[0].stage, name="initdb-twin", twin_of="initdb", afresh=True),
    )
    return html.render(
        facts_of(folder, characters=(CHARACTERS[0], twin), invalid=(), aa=True, rounds=5)
    )


def many(folder: Path) -> str:
    """Eight stages, as the plans after published reports have them."""
    names = ("initdb", "huge-pages", "wal-compression", "no-full-pages", "async-commit",
             "bigger-buffers", "second-disk", "everything")  # fmt: skip
    characters = tuple(
        replace(CHARACTERS[index % 3], stage=replace(CHARACTERS[index % 3].stage, name=name),
                nopm=27_000 * 1.08**index)
        for index, name in enumerate(names)
    )  # fmt: skip
    return html.render(facts_of(folder, characters=characters, invalid=(), rounds=5))


def named(facts: Facts, name: Callable[[str], str]) -> Facts:
    """The facts with other names of stages, wherever they stand."""

    def renamed(stage: StageFacts) -> StageFacts:
        compared = [
            replace(one, base=name(one.base)) if one else None
            for one in (stage.to_first, stage.to_previous)
        ]
        return replace(
            stage, name=name(stage.name), to_first=compared[0], to_previous=compared[1],
            folder=f"/srv/{name(stage.name)}", build=name(stage.name),
        )  # fmt: skip

    return replace(
        facts,
        stages=tuple(renamed(stage) for stage in facts.stages),
        trials=tuple(replace(trial, stage=name(trial.stage)) for trial in facts.trials),
    )


def long_names(folder: Path) -> str:
    """Names, folders and builds as long as people make them."""
    # A plan allows 48 characters.
    return html.render(named(facts_of(folder), lambda name: f"{LONG[: 47 - len(name)]}-{name}"))


def hostile_names(folder: Path) -> str:
    """Names that mean something to a page, and two hundred letters without a break."""
    word = " ".join(ENDS.values())
    facts = named(facts_of(folder), lambda name: f"{name} {word}")
    trials = tuple(replace(trial, reason=word) for trial in facts.trials)
    return html.render(replace(facts, question=word, plan=word, trials=trials))


def everything(folder: Path) -> str:
    """Every section has something to say, and every check has found something."""
    return html.render(filled(facts_of(folder)))


def _from_hosts(number: int, stage: str) -> TrialRecord:
    """A trial whose load came from several hosts."""
    result = replace(a_result(), fleet=DRIVEN)
    return TrialRecord(number, 1, stage, "", TrialState.FINISHED, result=result)


def _servers(stages: Sequence[StageFacts]) -> ServersFacts:
    """Of a workload over two servers: with one that violates conditions, and tells little."""
    times = (12 * MS, 34 * MS, 156 * MS, 2_345 * MS)
    rows = tuple(
        ServerRow(stage.name, name, held, "PostgreSQL 18.6", 3, 61_728.0, share, times, None,
                  commits, at_most, 5e6, 4_321.0, checkpoints, 3, violations)
        for number, stage in enumerate(stages)
        for name, held, share, commits, at_most, checkpoints, violations in (
            (NAMES[0], "warehouses 1 to 5", 0.67, 1_234.5, number == 0, 3.0, 0),
            (NAMES[1], "warehouses 6 to 10", 0.33, None, True, None, 12),
        )
    )  # fmt: skip
    unlike = (UnlikeSetting("shared_buffers", ("6GB", None)),)
    return ServersFacts(NAMES, "block", rows, unlike)


def _replica(names: Sequence[str]) -> tuple[ReplicaRow, ...]:
    """Of stages whose reads a replica answered; of all but the first its WAL was not read."""
    return tuple(
        ReplicaRow(name, 8, 3, 1_234.5, 0.083, 720,
                   Levels(0.0, 0.31, 2.4, None if number else 2.0),
                   None if number else Levels(0.0, 3e6, 2.5e8))
        for number, name in enumerate(names)
    )  # fmt: skip


def _of_a_running_server(facts: Facts) -> Facts:
    """The facts with what a server that runs already tells of itself."""
    return replace(
        facts,
        command="pgdyno run running.toml --conninfo"
        f" 'host={LONG}.example.org port=5432 dbname=postgres user=engineer'",
        reference={"tpmC of the earlier report": "256,195"},
        builds={LONG: {"configure": "'--with-lz4' '--with-zstd' '--with-liburing' CFLAGS='-O3"
                       " -march=native -fno-omit-frame-pointer'"}},
        server={"version": "PostgreSQL 16.4", "size": "123 GiB"},
        configuration=tuple(
            ServerSetting(name, value, "/etc/postgresql/16/main/conf.d/90-tuning.conf:17")
            for name, value in (
                ("shared_buffers", "6GB"), ("archive_command", f"cp %p /srv/archive/{LONG}/%f"),
            )
        ),
    )  # fmt: skip


def filled(facts: Facts) -> Facts:
    """The facts with all that only some runs have."""
    facts = _of_a_running_server(facts)
    return over_time(with_views(_with_what_the_server_counted(_with_what_was_found(facts))))


def _with_what_the_server_counted(facts: Facts) -> Facts:
    names = [stage.name for stage in facts.stages]
    return replace(
        facts,
        diagnosis=diagnose_stages(
            [StageWindows(name, [replace(PLANTED["flush"], stage=name)]) for name in names]
        ),
        statements=tuple(
            StatementRow(f"{LONG} ${number}", "new_order", (USED,) * len(names))
            for number in (1, 2)
        ),
        tables=tuple(TableRow(f"{LONG[:40]}_{n}", (GROWN,) * len(names)) for n in (1, 2)),
        plans=plans(names, LONG),
        processes=tuple(
            ProcessRow(role, (ProcessUse(cpus, waiting, read, written),) * (len(names) - 1)
                       + (ProcessUse(cpus, None, None, None),))
            for role, cpus, waiting, read, written in (
                ("backend", 1.234, 0.456, 3.2e6, 123_456.0),
                ("checkpointer", 0.0456, 0.0012, 0.0, 45.6e6),
                ("background_writer", 0.0123, 0.0, 0.0, 12.3e6), ("wal_writer", 0.0, 0.0, 0.0, 7e3),
                ("telemetry", 0.0089, 0.0, 0.0, 0.0), ("unseen", 0.0, None, 12_345.0, 0.0),
            )
        ),
        storage=StorageInUse(
            tuple(
                DiskInUse(name, f"/srv/{LONG[:40]}", names[0], *(
                    Span(mid, 0.9 * mid, 1.1 * mid, 3)
                    for mid in (12_345.6, 0.000_123, 1.5, 2_345.6, 0.004_567, 123.4, 0.000_789,
                                0.45, 0.012, 0.123, 7.8)
                ))
                for name in names
            ),
            (f"/srv/{LONG[:40]}", "/mnt/local ssd"), True,
            tuple(
                StepAnswers(step.by, ("try", "not known", "not for this load")) for step in STEPS
            ),
            (Advice(names[0], "let a session read ahead", LONG,
                    {"effective_io_concurrency": "64"}, LONG, "parallel-io"),),
            (NotKnown(names[-1], "Let commits share flushes", LONG, "group-commit"),),
            (NotForThisLoad(names[1], "Spread tables and indexes over these disks", LONG),),
        ),
        telemetry=looked_at(names, LONG),
    )  # fmt: skip


def _with_what_was_found(facts: Facts) -> Facts:
    stages = tuple(_filled(stage) for stage in facts.stages)
    names = [stage.name for stage in stages]
    trials = tuple(replace(trial, engine=ENGINE, pgbench=SAID) for trial in facts.trials)
    spread = Spread(123_456.0, (120_000.0, 123_456.0, 131_072.0))
    times = (12 * MS, 34 * MS, 156 * MS, 2_345 * MS)
    return replace(
        facts,
        stages=stages,
        trials=trials,
        replaced=tuple(
            ReplacedFacts(trial.number + 9, trial.number, 2, trial.stage, "failed",
                          "server went away: 57P02 after 12 s", 123_456.0)
            for trial in trials[3:6]
        ),
        steps=tuple(
            StepFacts(name, number, 120.0, (0.25, 1.75), spread, 1_234, 56, times)
            for name in names for number in (1, 2)
        ),
        parts=tuple(
            PartFacts(name, f"pgdyno_{part}", spread, times) for name in names for part in (1, 2)
        ),
        outages=(Outage(4, names[0], 2, 12.34, None, 8), Outage(5, names[1], 2, 1.5, 3.25, 8)),
        earlier=EarlierReportFacts(
            "a report of 2019 (https://example.org/a-rather-long-address-of-a-report-of-2019)",
            "2 × Xeon, 256 GiB, NVMe", 1,
            tuple(
                EarlierFigures(name, metric, names[0], 256_195.0, 1.25, 130_000.0, 1.31, 1.2, 1.42)
                for metric in ("nopm", "tpm_total") for name in names
            ),
        ),
        recovery=tuple(
            RecoveryFacts(name, Spread(12.3, (11.0, 12.3, 14.0)), Spread(10.1, (9.0, 10.1, 12.0)),
                          Spread(3.2e9, (3.0e9, 3.2e9, 3.5e9)), guarded=number == 2,
                          on_front=number != 1)
            for number, name in enumerate(names)
        ),
        wal=tuple(_wal(name) for name in names[:-1]),  # of the last it is not known
        cycles=tuple(_cycles(name) for name in names),
        fleet=fleet_facts(names, [_from_hosts(number, name) for number, name in enumerate(names)],
                          server_on_host=True),
        servers=_servers(stages),
        replica=_replica(names),
        looks=(3, 4, 5, 6, 8),
        warnings=("round 2 of stage tuned lies 6.1 MAD (-12.0%) off what the other trials let"
                  " expect; interference? It is kept",),
        placement=Judgement("finding", "trials of one stage differ by up to 12% with where the"
                            " scheduler placed sessions", "More rounds average it."),
        differences=(
            Difference("kernel", ("Linux 6.18.44 in trials 1, 2, 3", "Linux 6.18.45 in trial 4"),
                       None),
        ),
        mistakes=tuple(
            MistakeFacts(f"E{number}", "one layer changes between consecutive stages", "finding",
                         f"{LONG} changes settings and the client at once")
            for number in range(1, 16)
        ),
        deviations=(*facts.deviations, Deviation("the mix is 40/36/8/8/8", "as the earlier report"
                                                 " had it", "5.2.3", tuple(names))),
    )  # fmt: skip


def _filled(stage: StageFacts) -> StageFacts:
    doubtful = Judgement("finding", "the window of 30 s holds 1 checkpoint and no whole cycle of"
                         " 412 s", "Use `checkpoints = \"anchors\"`.", 2, 3)  # fmt: skip
    tail = TailFacts("new_order", "p99.9", "initdb", 1.83, 1.61, 2.12, 0.95, 6, "worse", "…")
    first = stage.to_first and replace(stage.to_first, low=0.055, high=1_157.045)
    return replace(
        stage, to_first=first, tails=(tail,) if stage.to_first else (), checkpoint_cycle=doubtful,
        client_limit=doubtful, steadiness=replace(doubtful, verdict="drifting"),
        window_end=doubtful, benchmarksql_orders=stage.nopm, benchmarksql_total=stage.tpm_total,
        rung_planned="D0", not_known=("the server's storage: it does not run on this host",),
    )  # fmt: skip


def _wal(name: str) -> StageWal:
    kinds = (
        WalPart("Heap UPDATE", 3_210.0, 12.3, 0.4, 2_900.0),
        WalPart("XLOG FPI_FOR_HINT", 1_500.0, 0.2, 0.2, 1_490.0),
        *(WalPart(f"Btree KIND_{number}", 100.0 - number, 1.0, 0.0, 0.0) for number in range(12)),
    )  # fmt: skip
    relations = (
        WalPart("order_line", 2_345.0, 10.1, 0.3, 2_000.0), WalPart(LONG, 700.0, 1.0, 0.0, 0.0),
        WalPart("1663/16384/16399", 12.0, 0.1, 0.0, 0.0),
    )  # fmt: skip
    transactions = (
        WalTransactions(("new_order",), ("district", "new_order", "order_line", "orders", "stock"),
                        55_000, 9_512.0, 58.2, 0.9, 6_800.0, 0.69),
        WalTransactions(("payment",), ("customer", "district", "history", "warehouse"),
                        53_000, 1_412.0, 7.1, 0.1, 800.0, 0.1),
        WalTransactions((), ("pg_statistic",), 12, 33_000.0, 160.0, 0.0, 0.0, 0.01),
        WalTransactions((), (), 3, 34.0, 1.0, 0.0, 0.0, 0.0001),
    )  # fmt: skip
    others = WalShares(0.0, 0.002, 0.0004, 0.19)
    return StageWal(name, 5, 0.63, 123_456, 6_123.0, 34.5, 0.61, 0.72, kinds, relations,
                    transactions, others)  # fmt: skip


def _cycles(name: str) -> CycleFacts:
    anchor = AnchorFacts(10, 1, 412.0, 101_234.0, 112_345.0, 0.83, tuple([98_765.0] * 20))
    tables = tuple(
        VacuumTable(f"pgdyno.{table}", 12, 34.5, 3.2, 123_456_789.0)
        for table in ("order_line", "stock", "district")
    )
    vacuum = VacuumFacts(
        0.42, 0.11, 0.07, 0.01, 34.5, 3.2, VacuumCost(1_234.0, 56.7), VacuumCost(123.0, 4.5),
        tables, (1, 2), True,
    )  # fmt: skip
    invalid = ("throughput falls by 21% ± 5% from the first cycle to the second",)
    return CycleFacts(
        name, "anchors", (398.0, 412.0), 405.0, 12_345_678.0, 0, 3, (anchor, anchor), invalid,
        False, vacuum,
    )  # fmt: skip


def knee(_: Path) -> str:
    """A knee that was found, by its rate."""
    return curve.render_html(curve_facts(_CURVE))


def unsettled_knee(_: Path) -> str:
    """A knee that was not, by terminals, of a server with a long name."""
    server = f"host={LONG}.example.org port=5432 dbname={LONG} user={LONG} sslmode=verify-full"
    found = Knee("unsettled", 1_234_567, 9_876_543, 3)
    points = tuple(replace(one, level=one.level * 10_000) for one in _CURVE.points)
    shown = replace(_CURVE, by="terminals", knee=found, points=points, server=server)
    return curve.render_html(curve_facts(shown))


def proved(folder: Path) -> str:
    """A proof by intervention."""
    with RunFile.read(write_miniature(folder / "run.sqlite")) as run:
        found = proofs.proof(plan_in(run.info()))
    return proof.render_html(proof_facts(found, proofs.INFO))


def drilled(folder: Path) -> str:
    """A drill whose second stage lost much."""
    with RunFile.read(write_miniature(folder / "run.sqlite")) as run:
        found = drills.drill(plan_in(run.info()))
    return drill.render_html(drill_facts(found, drills.INFO))


def climbed(_: Path) -> str:
    """A climb of three steps, judged at its end; with long names of moves."""
    return climb.render_html(climbs.a_climb(LONG), climbs.MADE)


def storage_of_two(_: Path) -> str:
    """A disk and memory."""
    paths = floor("/srv/disk"), floor("/dev/shm", MEMORY)
    return storage.render_html(storage_facts(probed(*paths, together=(60_000.0, 50_000.0))))


def storage_of_six(_: Path) -> str:
    """As many paths as a storage engineer compares, with long names."""
    paths = (floor(f"/srv/{LONG}/{number}") for number in range(6))
    return storage.render_html(storage_facts(probed(*paths)))


def calibration(_: Path) -> str:
    """Two faces; the null server held one of them back."""
    return ceiling.render_html(calibration_facts(CALIBRATED, "20261122-030000-calibration"))


def _workload(face: Face) -> Workload:
    return Workload("tpcc", 42, face=face, connections=8, terminals=8, tpcc=Tpcc(1))


CALIBRATED = Calibrated(
    workloads=(_workload("statement"), _workload("pipeline")), rounds=3, window_s=3.0,
    driver_cpus=(0,), server_cpus=(1,),
    machine=Machine("AMD EPYC 9754 128-Core Processor (2 of 256 CPUs)", 2, "Linux 6.18.44"),
    pgdyno="0.1.0", started_unix_ns=1_795_348_800_000_000_000, kept=True,
    measured=tuple(
        Round(1_234_567 * times + number, 26.4 * 1_234_567, 3.0, 2.9, wanted, 0.99)
        for number in range(3) for times, wanted in ((1, 0.99), (3, 0.8))
    ),
)  # fmt: skip
# A broken window of every kind of failure.
_FAILING = Point(420, 419.0, 300.0, 30_000_000, 90_000_000, 3_000, 12, 34, 80_000_000)
_CURVE = replace(CURVE, points=(KEPT, _FAILING, KEPT, _FAILING))

PAGES: dict[str, Callable[[Path], str]] = {
    make.__name__: make
    for make in (
        plan, decided, stopped, beside_others, nothing, against_itself, many, long_names,
        hostile_names, everything, knee, unsettled_knee, proved, drilled, climbed, storage_of_two,
        storage_of_six, calibration,
    )
}  # fmt: skip
"""The text of each page, by its name; a function makes it in a folder of the test's own."""
