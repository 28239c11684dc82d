"""Tests of the machine: locations of knobs, journal, changes, what is shown."""
