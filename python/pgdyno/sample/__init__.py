"""Samples the host and the server while a trial is driven."""

from pgdyno.sample.recorder import Recorder, delta

__all__ = ["Recorder", "delta"]
