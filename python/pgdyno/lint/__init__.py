"""Reads configuration files and names what is gone, without effect, or dangerous in them."""

from pgdyno.lint.check import check
from pgdyno.lint.finding import Finding, Severity
from pgdyno.lint.source import KINDS, Assignment, Kind, Source, read_source
from pgdyno.lint.system import System

__all__ = [
    "KINDS",
    "Assignment",
    "Finding",
    "Kind",
    "Severity",
    "Source",
    "System",
    "check",
    "read_source",
]
