"""What the kernel tells a CPU's time apart by; known without all that a run is made of."""

CPU_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""States of a host's CPUs: the series `cpu.<state>_s` of all of them together hold all its time."""
IDLE_STATES = ("idle", "iowait")
"""Of these, in which a CPU works for nobody."""
