"""Tests of experiments, without servers."""
