"""Frozen records, units and errors that every layer may use; no behaviour, no input or output."""
