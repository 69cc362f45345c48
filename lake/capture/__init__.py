"""Captures the changes of a database into one raw table of a lake: `metastore capture`. docs/capture.md explains it."""
