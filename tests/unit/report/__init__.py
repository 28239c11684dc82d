"""Tests of the report's parts."""
