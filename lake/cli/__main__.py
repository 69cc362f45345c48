"""`python -m lake.cli`, the same as the `metastore` command."""

from lake.cli import main

main(prog_name="metastore")
