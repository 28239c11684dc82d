"""`python -m pgdyno` is the command line."""

from pgdyno.cli.entry import main

main()
