"""Files of a cluster, opened for the core to read: without a server, and nothing is changed."""
