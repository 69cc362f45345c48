"""Keyed lake tables beside Hudi: what runs in the interpreter of Spark 3.5."""
