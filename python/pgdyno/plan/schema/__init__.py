"""What a plan file may say: its keys, types and bounds, read from TOML; nothing of a server."""
