"""Simulations that hold our statistics against what they promise."""
