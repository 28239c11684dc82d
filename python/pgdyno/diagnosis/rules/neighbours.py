"""3: CPU time that others took: neighbours on the host, the hypervisor, a control group's limit."""

from __future__ import annotations

from pgdyno.analysis.account_facts import WANTS_CPU
from pgdyno.analysis.diagnosis_facts import Figure
from pgdyno.analysis.host_use import HostUse
from pgdyno.diagnosis import needs
from pgdyno.diagnosis.host import host_use
from pgdyno.diagnosis.rule import (
    Cleared,
    Found,
    Knob,
    NotKnown,
    Rule,
    Seen,
    Threshold,
    caps_of,
)
from pgdyno.model.units import digits_text, share_text


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Waiting for a CPU, as far as others than ourselves had it.

    Where no CPU idles that may be all of it: whoever computes keeps a CPU for milliseconds, our own
    processes keep it for as long as a statement takes. What we use already bounds the gain then.
    """
    use = host_use(seen.window)
    if use is None:
        return NotKnown("who used the host's CPUs is not known")
    held_back = seen.window.per_s("cgroup.throttled_s")  # on all CPUs together
    is_full = use.idle < rule.limit("idle")
    whose = 1.0 if is_full else max(1 - use.own_part, min(1.0, held_back or 0.0))
    share = seen.share(WANTS_CPU) * whose
    held = () if held_back is None else (
        Figure("CPUs on which the control group held back", held_back, "1",
               limit=rule.limit("held_back")),
    )  # fmt: skip
    figures = (
        seen.figure("wanting a CPU that others may have", share, rule.limit("share")),
        Figure("CPU time of the host that others used", use.others, "share",
               limit=rule.limit("others")),
        Figure("CPU time that the hypervisor took", use.stolen, "share",
               limit=rule.limit("stolen")),
        *held,
    )  # fmt: skip
    causes = [one for one in figures[1:] if one.value >= (one.limit or 0)]
    if not causes:
        return Cleared("others took next to nothing of the host's CPU time", figures)
    taken = share_text(float(share[0]))
    who = _who(use, held_back, rule)
    if float(share[0]) < rule.limit("share"):
        return Cleared(f"{who}, but sessions wait for that only {taken} of session time", figures)
    fact = f"{who}, and sessions want a CPU meanwhile {taken} of session time"
    return Found(fact, share, figures, caps_of(seen.window))


def _who(use: HostUse, held_back: float | None, rule: Rule) -> str:
    told = []
    if use.others >= rule.limit("others"):
        told.append(f"other programs used {share_text(use.others)} of the host's CPU time")
    if use.stolen >= rule.limit("stolen"):
        told.append(f"the hypervisor took {share_text(use.stolen)} of it")
    if held_back is not None and held_back >= rule.limit("held_back"):
        cpus = digits_text(held_back, 2)
        told.append(f"the control group held the server back on {cpus} CPUs on average")
    return " and ".join(told)


RULE = Rule(
    number=3,
    title="what others take of the CPUs",
    needs=(needs.sessions, needs.cpu_by_process, needs.host_cpu),
    thresholds={
        "share": Threshold(0.05, "of session time, that wants a CPU others may have"),
        "others": Threshold(0.15, "of the host's CPU time, that is neither server's nor client's"),
        "stolen": Threshold(0.02, "of the host's CPU time, that the hypervisor took"),
        "idle": Threshold(0.05, "of the host's CPU time: with less it is full"),
        "held_back": Threshold(0.05, "CPUs, on which the control group held the server back"),
    },
    confounders=(
        "Work that the kernel does for the server (journals, interrupts) counts as others'.",
        "A short burst after idling may run into a limit that a longer window does not meet.",
    ),
    knobs=(
        Knob("a host of its own", "What others take cannot be tuned away; measure without them."),
        Knob("the limit of the control group", "Of the server's group: see its `cpu.max`."),
    ),
    answer=answer,
    parts=(WANTS_CPU,),
    before_cpus=True,
    may_save="the CPU time lost to caches that others made cold",
)
