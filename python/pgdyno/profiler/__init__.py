"""Profiles of a server of ours, the kernel and the driver, in a window of their own."""
