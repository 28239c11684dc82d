"""Reads configuration files and names what is gone, without effect, or dangerous in them."""

from pgdyno.linter.check import check
from pgdyno.linter.finding import Finding, Severity
from pgdyno.linter.source import KINDS, Assignment, Kind, Source, parse, read_source
from pgdyno.linter.system import System

__all__ = [
    "KINDS",
    "Assignment",
    "Finding",
    "Kind",
    "Severity",
    "Source",
    "System",
    "check",
    "parse",
    "read_source",
]
