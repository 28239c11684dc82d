"""Tests of the library that the command line stands on, without servers."""
