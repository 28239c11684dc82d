"""Drives a workload: starts the driver process, watches it, reads what it measured."""
