"""Samples the host and the server while a trial is driven."""

from pgdyno.sample.recorder import Recorder

__all__ = ["Recorder"]
