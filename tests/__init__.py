"""Tests, by cost: unit, property, snapshot, cluster, method, browser."""
