"""T14, T15 and E: traps of who lays results beside each other, as the field reports did."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.imports.simultaneous import SIMULTANEOUS, overlap
from pgdyno.imports.trap import Unknown, number, trap
from pgdyno.model.imported import CONDITIONS, Imported
from pgdyno.model.wording import listed, plural

_PAYMENT_LEAST, _OTHER_LEAST = 43.0, 4.0  # percent, clause 5.2.3
_TIME_NEAR = 0.05
_TIME_NEAR_S = 2.0
_DIGITS_MIN = 5  # significant ones; shorter figures agree by chance
_COUNTED = (
    ("clients", "client"), ("threads", "thread"), ("warehouses", "warehouse"),
    ("duration_s", "second"),
)  # fmt: skip
_WORDS = ("isolation", "statement_form", "keying_and_thinking")
_KIN_MAX = 100  # results, of which each is held against each
_SAME_LOAD = ("transaction_type", "scale")


@trap(
    "T14",
    what="clients of one run are added up although they did not run at the same time",
    fires="times of results of one tool overlap in part only",
)
def clients_apart(one: Imported, beside: Sequence[Imported]) -> str | None:
    """What is added up must have run together."""
    found = []
    for other in beside:
        if other.tool != one.tool or one.span is None or other.span is None:
            continue
        share = overlap(one, other)
        if 0 < share < 1 - _TIME_NEAR:
            found.append(f"{other.source.place} ({share:.0%})")
    if not found:
        return None
    return f"it ran at the same time only in part as {listed(found[:5])}: they must not be added up"


@trap(
    "T15",
    what="what was not told is taken for nothing",
    fires="failures, duration, clients or version are not told",
)
def not_told(one: Imported, _beside: Sequence[Imported]) -> str | None:
    """Unknown is unknown, never 0."""
    if one.form in ("loading", "runInfo.csv", "properties"):
        return None
    lacking = [name for name in one.unknown if name not in ("settings of the server", "host")]
    lacking += list(one.missing)
    verb = "is" if len(lacking) == 1 else "are"
    return f"{listed(lacking)} {verb} not told: unknown, and not 0" if lacking else None


@trap(
    "E2", "BenchmarkSQL",
    what="a mix with fewer Payments than the text asks for is called TPC-C",
    fires="Payments are below 43%, or another kind below 4%; unknown without a mix",
)  # fmt: skip
def not_the_mix(one: Imported, _beside: Sequence[Imported]) -> str | None:
    """Clause 5.2.3 has least shares."""
    payment, other = number(one, "payment_percent"), number(one, "other_percent")
    if payment is None or other is None:
        return (
            Unknown("the weights of the mix are not told: the properties file has them")
            if one.value("nopm_ended")
            else None
        )
    if payment >= _PAYMENT_LEAST and other >= _OTHER_LEAST:
        return None
    return f"the mix has {payment:g}% of Payments, the text asks for 43%: it is another load"


@trap(
    "E6",
    what="a gain is read from one run of each configuration",
    fires="it stands alone; unknown beside results that `--repeats` does not call repeats",
)
def measured_once(one: Imported, beside: Sequence[Imported]) -> str | None:
    """One run has no spread."""
    if not one.comparable:
        return None
    keys = ("clients", "scale", "warehouses", "transaction_type", "query_mode", "database")
    same = [
        other for other in beside
        if _is_alike(one, other, keys) and overlap(one, other) == 0
    ]  # fmt: skip
    if not same:
        return (
            "it is one run: what two such figures differ by may be chance, however large it looks"
        )
    if "repeats" in one.conditions:
        return None
    return Unknown(
        "settings of the server are not told: --repeats says that results are of the same ones"
    )


def _is_alike(one: Imported, other: Imported, keys: Sequence[str]) -> bool:
    """Whether both are of the same output of one tool, under these conditions alike."""
    return (one.tool, one.form) == (other.tool, other.form) and all(
        other.conditions.get(key) == one.conditions.get(key) for key in keys
    )


@trap(
    "E7",
    what="the file asks for one duration, the output tells another",
    fires="asked and told durations differ by more than 5% and 2 s; unknown without both",
)
def other_duration(one: Imported, _beside: Sequence[Imported]) -> str | None:
    """What was asked for is not always what ran."""
    asked, told = number(one, "asked_duration_s"), number(one, "duration_s")
    if asked is None or told is None:
        return Unknown("what was asked for is not told beside it") if one.comparable else None
    if abs(told - asked) <= max(_TIME_NEAR * asked, _TIME_NEAR_S):
        return None
    return f"{asked:g} s were asked for, and it ran {told:g} s: another file was used"


@trap(
    "E10",
    what="a figure is copied from another machine's",
    fires="two results agree in a figure to the last of five digits or more",
)
def copied(one: Imported, beside: Sequence[Imported]) -> str | None:
    """Two measurements never agree to the digit."""
    measured = {
        (t.metric, t.value) for t in one.told if t.of is None and _digits(t.value) >= _DIGITS_MIN
    }
    found = []
    for other in beside:
        same = [t for t in other.told if t.of is None and (t.metric, t.value) in measured]
        where = other.source.place
        found += [f"{t.metric} {t.value:.15g} is that of {where} to the digit" for t in same[:1]]
    return "; ".join(found[:5]) or None


def _digits(value: float) -> int:
    return len(f"{value:.15g}".replace(".", "").strip("0"))


@trap(
    "E11",
    what="results are compared although more than one thing differs",
    fires="results of the same tool and load beside it have other clients, sizes, times, isolation,"
    " waiting or form of statements, or more of them ran together than of it",
)
def not_comparable(one: Imported, beside: Sequence[Imported]) -> str | None:
    """Everything that differs is named."""
    kin = [other for other in beside if _is_alike(one, other, _SAME_LOAD)]
    found = [
        *(_other_number(one, kin, key, noun) for key, noun in _COUNTED),
        *(_other_word(one, kin, key) for key in _WORDS),
        _other_company(one, kin),
    ]
    return "; ".join(said for said in found if said) or None


def _other_number(one: Imported, kin: Sequence[Imported], key: str, noun: str) -> str | None:
    if (mine := number(one, key)) is None:
        return None
    others = {value for other in kin if (value := number(other, key)) is not None}
    apart = sorted(v for v in others if abs(v - mine) > _TIME_NEAR * mine)
    if not apart:
        return None
    counted = plural(int(mine), noun) if mine.is_integer() else f"{mine:g} {noun}s"
    verb = "stands" if mine == 1 else "stand"
    return f"{counted} {verb} beside {listed([f'{v:g}' for v in apart[:5]])}"


def _other_word(one: Imported, kin: Sequence[Imported], key: str) -> str | None:
    mine = one.conditions.get(key)
    others = sorted({str(value) for other in kin if (value := other.conditions.get(key))})
    apart = [other for other in others if other != mine]
    if mine is None or not apart:
        return None
    return f"{CONDITIONS[key]} {mine} beside {listed(apart[:5])}"


def _other_company(one: Imported, kin: Sequence[Imported]) -> str | None:
    """Whether others ran with more clients of the tool, or with fewer: another load."""
    if one.span is None or len(kin) > _KIN_MAX:
        return None
    mine = _together(one, kin)
    apart = {
        _together(other, [one, *(third for third in kin if third is not other)])
        for other in kin
        if other.span is not None and overlap(one, other) < SIMULTANEOUS
    } - {mine}  # fmt: skip
    if not apart:
        return None
    verb = "ran alone" if mine == 1 else "ran together"
    others = listed([str(count) for count in sorted(apart)[:5]])
    return f"{plural(mine, 'client')} of the tool {verb}, beside results of {others}"


def _together(one: Imported, others: Sequence[Imported]) -> int:
    """How many clients of the tool ran at its time, itself included."""
    return 1 + sum(overlap(one, other) >= SIMULTANEOUS for other in others)
