"""Attacks on purpose: hostile inputs, kills at every step, strangers' files."""
