"""What makes `full_page_writes = off` safe: a standby that qualifies, an interlock, a watch.

Nothing here starts a server. What is torn is repaired by blocks of the standby; until then the
interlock keeps the server from being started.
"""
