"""Samples the host and the server once a second while a trial is driven."""

from pgdyno.sample.recorder import Recorder, delta

__all__ = ["Recorder", "delta"]
