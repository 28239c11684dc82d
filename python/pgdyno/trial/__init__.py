"""Trials: a stage measured once, from the fixture to the stored result; see `measure`."""
