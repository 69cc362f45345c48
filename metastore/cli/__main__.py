"""`python -m metastore.cli`, the same as the `metastore` command."""

from metastore.cli import main

main(prog_name="metastore")
