"""Recorded disks: a file system that writes down what a server asks, and disks made of that.

What a disk may be after a power cut stands in `docs/concepts/power-cuts.md`. Nothing here starts a
server, and nothing here touches a data directory but the one that it is given.
"""
