"""Workloads between Python and the core: what is said of one, and what the core answers."""
