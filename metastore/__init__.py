"""A Hive-Metastore-compatible metastore server for lake tables."""

__version__ = "0.1.0"
