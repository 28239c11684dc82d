"""Tests of the machine: spots, journal, changes, what is shown."""
