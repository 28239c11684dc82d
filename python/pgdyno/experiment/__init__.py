"""Experiments: a plan, a knee, a calibration, probed storage; each reads like a picture."""
