"""Settings of PostgreSQL: what a server says of them, their values, and what they bring about."""
