"""Tests of what is made of a run file."""
