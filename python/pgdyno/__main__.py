"""`python -m pgdyno` is the command line."""

from pgdyno.cli.app import main

main()
