"""Tests of `pgdyno.diagnosis`."""
