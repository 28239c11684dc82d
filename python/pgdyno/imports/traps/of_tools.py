"""T1 to T13: traps that a tool sets by what it counts and how it tells it."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.imports.trap import Unknown, number, trap
from pgdyno.model.imported import Imported
from pgdyno.model.units import count_text
from pgdyno.model.wording import listed, plural

LIMIT = 12.86
"""New-Orders a minute and warehouse that keying and think times allow, by the mix of the text."""
_NEW_ORDER_MOST = 0.45
_HAMMERDB_SHARE = 10 / 23
_NEAR = 0.03  # relative: what a mix may be off in a window of any length
_RATE_NEAR = 0.01
_NO_CONSOLE = ("summary.csv", "histogram.csv", "runInfo.csv", "properties")
_ROWS_5 = "result.csv of 5"
_PERCENTILES = ("50th", "90th", "95th", "99th", "99.9th", "Max")


def _nopm(one: Imported) -> float | None:
    ended = one.value("nopm_ended")
    return one.value("nopm_committed") if ended is None else ended


@trap(
    "T1", "BenchmarkSQL", "go-tpc", "DBT-2", "BenchBase",
    what="transactions of all kinds a minute are called tpmC",
    fires="New-Orders are not the share of all that the mix has; without a mix, not 45%",
)  # fmt: skip
def total_called_tpmc(one: Imported, _beside: Sequence[Imported]) -> str | None:
    """New-Orders and all transactions must stand to each other as the mix has them."""
    orders, every = one.value("nopm_ended"), one.value("tpm_all_ended")
    if not orders or not every:
        if not one.comparable and not one.told:
            return None
        return Unknown("New-Orders and all transactions a minute are not both told")
    told = number(one, "new_order_percent")
    share, wanted = orders / every, _NEW_ORDER_MOST if told is None else told / 100
    if abs(share - wanted) <= _NEAR * wanted:
        return None
    mix = "the text's mix has 0.450 at most" if told is None else f"its mix has {wanted:.3f}"
    return (
        f"New-Orders are {share:.3f} of all transactions, {mix}: {count_text(every)} a minute are"
        f" of all kinds, and {count_text(orders)} New-Orders"
    )


@trap(
    "T2", "BenchmarkSQL", "go-tpc", "HammerDB", "DBT-2", "BenchBase",
    what="a load without keying and think times is called TPC-C",
    fires=f"more than {LIMIT} New-Orders a minute and warehouse",
)  # fmt: skip
def no_waiting(one: Imported, _beside: Sequence[Imported]) -> str | None:
    """Terminals that key and think allow no more than `LIMIT` for each warehouse."""
    orders, warehouses = _nopm(one), number(one, "warehouses")
    if orders is None:
        return None
    told = one.said("share of the theoretical maximum") or one.said("efficiency")
    if warehouses is None and told is not None:
        each = told / 100 * LIMIT
    elif not warehouses:
        return Unknown("the number of warehouses is not told: name it with --warehouses")
    else:
        each = orders / warehouses
    if each <= LIMIT:
        return None
    return (
        f"{each:,.1f} New-Orders a minute and warehouse are more than the {LIMIT} that keying and"
        " think times allow: it is NOPM without waiting, and no tpmC"
    )


@trap(
    "T3", "BenchmarkSQL",
    what="4.1 and 5: tpmC counts New-Orders that failed, and those that rolled back",
    fires="a failure was logged, or rows beside a console tell fewer committed New-Orders than"
    " ended; unknown where the console is not whole",
)  # fmt: skip
def failed_counted(one: Imported, beside: Sequence[Imported]) -> str | None:
    """The counter is raised after the catch."""
    if "6" in one.form or one.form in _NO_CONSOLE:
        return None
    if one.form == _ROWS_5:
        return _failed_rows(one)
    rows = next((other for other in beside if other.form == _ROWS_5), None)
    if rows is not None:
        return _beside_rows(one, rows)
    if one.failed:
        return (
            f"{plural(one.failed, 'transaction')} failed, and tpmC and tpmTOTAL count them: only"
            " result.csv could tell which were New-Orders"
        )
    if one.failed is None:
        return Unknown(
            "whether transactions failed is not told: the console from its first line tells it, or"
            " result.csv"
        )
    return None


def _failed_rows(rows: Imported) -> str | None:
    if not rows.failed:
        return None
    return f"{plural(rows.failed, 'transaction')} failed, and tpmC and tpmTOTAL count them"


def _beside_rows(console: Imported, rows: Imported) -> str | None:
    """What a tpmC holds besides New-Orders that were committed, by the rows of its run."""
    ended, committed = rows.value("nopm_ended"), rows.value("nopm_committed")
    if console.said("tpmC") is None or not ended or committed is None or committed >= ended:
        return None
    return (
        f"tpmC counts New-Orders that rolled back or failed: of those in {rows.source.file}"
        f" {1 - committed / ended:.2%} did, and {count_text(committed)} a minute were committed"
    )


@trap(
    "T4", "BenchmarkSQL",
    what="6: counts include errors and rollbacks; TPM leaves out background deliveries",
    fires="summary or console tell errors; unknown from result.csv alone",
)  # fmt: skip
def errors_counted(one: Imported, beside: Sequence[Imported]) -> str | None:
    """`numTrans` is raised however a transaction ended."""
    if "6" not in one.form and one.form != "summary.csv":
        return None
    if one.failed:
        return f"{plural(one.failed, 'transaction')} ended in an error, and NOPM and TPM count them"
    told = any(other.failed is not None for other in beside if other.tool == one.tool)
    if one.failed is None and not told:
        return Unknown("errors are not told: summary.csv or the console has them")
    return None


@trap(
    "T5", "go-tpc",
    what="percentiles have one significant digit, and end at 16 s",
    fires="a percentile or a maximum is told",
)  # fmt: skip
def one_digit(one: Imported, _beside: Sequence[Imported]) -> str | None:
    """`sigFigs = 1`: a value is the edge of a bucket."""
    found = [told for told in one.told if told.metric in _PERCENTILES]
    if not found:
        return None
    found.sort(key=lambda told: (told.metric != "99th", told.of != "NEW_ORDER"))
    tail = found[0]
    return (
        f"{tail.of}: {tail.metric} of {tail.value:g} ms is the edge of a bucket of one"
        " significant digit: tails must not be compared by it"
    )


@trap(
    "T6", "go-tpc",
    what="each kind's rate is over its own seconds, and tpmTotal adds them up",
    fires="tpmTotal differs by more than 1% from all counts by the longest time",
)  # fmt: skip
def own_seconds(one: Imported, _beside: Sequence[Imported]) -> str | None:
    """Counts by the longest `Takes` are rates over one time."""
    told, counted = one.said("tpmTotal"), one.value("tpm_all_ended")
    if told is None or not counted:
        return Unknown("tpmTotal and the kinds are not told") if one.said("tpmC") else None
    if abs(told / counted - 1) <= _RATE_NEAR:
        return None
    return (
        f"tpmTotal adds rates over different seconds to {count_text(told)}: all transactions by"
        f" the longest time are {count_text(counted)} a minute"
    )


@trap(
    "T7", "HammerDB",
    what="TPM is commits and rollbacks of all databases of the server",
    fires="NOPM is not 10 of 23 of TPM, as its mix has it: the server did something else as well",
)  # fmt: skip
def tpm_of_the_server(one: Imported, _beside: Sequence[Imported]) -> str | None:
    """TPM is no count of the load's transactions."""
    orders, every = one.said("NOPM"), one.said("TPM")
    if orders is None or not every:
        return None
    share = orders / every
    if abs(share - _HAMMERDB_SHARE) <= _NEAR * _HAMMERDB_SHARE:
        return None
    return (
        f"NOPM is {share:.3f} of TPM, the mix has {_HAMMERDB_SHARE:.3f}: TPM counts commits and"
        " rollbacks of all databases, and is not the load's transactions"
    )


@trap(
    "T8", "HammerDB",
    what="a primary's NOPM contains what its replicas drove on the same database",
    fires="the instance is a primary, or a replica",
)  # fmt: skip
def replicas(one: Imported, _beside: Sequence[Imported]) -> str | None:
    """Orders are counted in the database, whoever wrote them."""
    instance = one.conditions.get("instance")
    if instance is None:
        return None
    return (
        f"the instance is a {instance}: NOPM is of all instances on the same database, and of none"
        " on another; add nothing up"
    )


@trap(
    "T9", "sysbench",
    what="tps of sysbench-tpcc is of all kinds; New-Orders are 10 of 23 of them",
    fires="the script is tpcc; unknown where the command is not in the file",
)  # fmt: skip
def tps_of_all_kinds(one: Imported, _beside: Sequence[Imported]) -> str | None:
    """No NOPM is made up."""
    script = one.conditions.get("transaction_type")
    if script is None:
        return Unknown("sysbench does not print the name of its script")
    if "tpcc" not in str(script):
        return None
    return (
        "tps are transactions of all kinds, about 43.5% of them New-Orders by the default mix; how"
        " many they were is not told, so there is no NOPM"
    )


@trap(
    "T10", "pgbench",
    what="figures with and without connecting, of other types or protocols, stand in one table",
    fires="tps hold connecting, or another type or mode stands beside; unknown without either",
)  # fmt: skip
def other_kind_of_tps(one: Imported, beside: Sequence[Imported]) -> str | None:
    """Transaction type and query mode say what a transaction is."""
    if one.form != "summary" or one.told_nothing_but("progress"):
        return None
    if one.conditions.get("reconnects") == "yes":
        return "every transaction connected anew (-C): its tps are of connecting, too"
    if one.value("tps") is None:
        return "tps are told with connecting only: a short run is lower by it"
    lacking = [n for n in ("transaction_type", "query_mode") if n not in one.conditions]
    if lacking:
        names = listed([name.replace("_", " ") for name in lacking])
        return Unknown(f"{names} {'is' if len(lacking) == 1 else 'are'} not told")
    found = []
    for key in ("transaction_type", "query_mode"):
        values = {
            str(x.conditions[key]) for x in beside if x.tool == one.tool and key in x.conditions
        }
        others = sorted(values - {str(one.conditions[key])})
        if others:
            found.append(f"{one.conditions[key]} stands beside {listed(others)}")
    return f"{'; '.join(found)}: their tps are of other transactions" if found else None


@trap(
    "T11", "go-tpc",
    what="a ping before each transaction is a commit to the server",
    fires="figures that a server counted stand beside",
)  # fmt: skip
def pings(_one: Imported, beside: Sequence[Imported]) -> str | None:
    """The server counts about twice the transactions."""
    counted = [
        other.name for other in beside if other.said("TPM") is not None and other.tool != "go-tpc"
    ]
    if not counted:
        return None
    return (
        f"commits that a server counts, as in {counted[0]}, hold a ping for each transaction of"
        " go-tpc: they are about twice its transactions"
    )


@trap(
    "T12", "DBT-2",
    what="NOTPM counts New-Orders that rolled back or failed",
    fires="mix.log has New-Orders with code R or E",
)  # fmt: skip
def other_codes(one: Imported, _beside: Sequence[Imported]) -> str | None:
    """The report's script counts all rows of kind n."""
    others = {code: one.counts.get(f"rows of New-Order, code {code}", 0) for code in "RE"}
    if not sum(others.values()):
        return None
    committed = one.value("nopm_committed")
    shown = "" if committed is None else f"; committed were {count_text(committed)} a minute"
    return (
        f"{plural(others['R'], 'New-Order')} rolled back and {others['E']} failed, and NOTPM counts"
        f" them{shown}"
    )


@trap(
    "T13", "YCSB",
    what="latencies are in ms or µs, with CLEANUP, and without the wait of a stalled client",
    fires="a label says ms, CLEANUP is there, or neither a target nor intended times are",
)  # fmt: skip
def closed_loop(one: Imported, _beside: Sequence[Imported]) -> str | None:
    """A client that waits for an answer does not send what would have been late."""
    found = []
    if any(told.metric.endswith("Latency(ms)") for told in one.told):
        found.append("latencies are whole milliseconds")
    if any(told.of == "CLEANUP" for told in one.told):
        found.append("CLEANUP is the end of the clients and no operation")
    is_open = any((told.of or "").startswith("Intended-") for told in one.told)
    if not is_open and any("Latency" in told.metric for told in one.told):
        found.append("the loop is closed: a stall hides the requests that it kept back")
    return "; ".join(found) or None
