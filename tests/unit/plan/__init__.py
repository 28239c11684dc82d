"""Tests of the plan file."""
