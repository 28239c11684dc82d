"""The kinds of experiments: one module each, called as run files call the kind.

A module has the function that begins one, and `EXPERIMENT`, which says what a run of it is. Whoever
opens a run file finds the module by the name in it; nowhere is there a list of them.
"""
